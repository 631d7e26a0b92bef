//! Copies between user slices and buffers: they are through when the call returns.

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::slice::{Slice, SliceMut};
use crate::view::{ReadView, WriteView};
use crate::{PinnedBuf, context};

fn check_len(what: &str, buffer: usize, other: usize) -> Result<()> {
    if buffer == other {
        return Ok(());
    }
    Err(Error::invalid(what, format!("the buffer's range has {buffer} elements, the slice {other}")))
}

pub(crate) fn copy_in<T: Element>(dst: SliceMut<'_, T>, source: &[T]) -> Result<()> {
    check_len("copy_from_slice", dst.len(), source.len())?;
    if dst.alloc().on_host {
        WriteView::open(dst)?.copy_from_slice(source);
        return Ok(());
    }
    context::enter("copy_from_slice")?;
    let mut staging = PinnedBuf::zeroed(dst.alloc().device, source.len())?;
    staging.write()?.copy_from_slice(source);
    let queue = Queue::new(dst.alloc().device)?;
    queue.copy(dst, &staging)?;
    queue.close()
}

pub(crate) fn copy_out<T: Element>(src: Slice<'_, T>, out: &mut [T]) -> Result<()> {
    check_len("copy_to_slice", src.len(), out.len())?;
    if src.alloc().on_host {
        out.copy_from_slice(&ReadView::open(src)?);
        return Ok(());
    }
    out.copy_from_slice(&staged(src)?.read()?);
    Ok(())
}

pub(crate) fn to_vec<T: Element>(src: Slice<'_, T>) -> Result<Vec<T>> {
    if src.alloc().on_host { Ok(ReadView::open(src)?.to_vec()) } else { Ok(staged(src)?.read()?.to_vec()) }
}

fn staged<T: Element>(src: Slice<'_, T>) -> Result<PinnedBuf<T>> {
    context::enter("copy_to_slice")?;
    let mut staging = PinnedBuf::zeroed(src.alloc().device, src.len())?;
    let queue = Queue::new(src.alloc().device)?;
    queue.copy(&mut staging, src)?;
    queue.close()?;
    Ok(staging)
}
