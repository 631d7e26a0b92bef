//! Operation providers: who implements an operation on a type of device.

use std::ffi::CString;

use crate::device::DeviceType;
use crate::error::{Error, Result, check, text};
use crate::sys;

/// An interned operation name.
///
/// ```
/// use vllm_cpp_sys::OpId;
///
/// let op = OpId::intern("engine.rope")?;
/// assert_eq!(op, OpId::intern("engine.rope")?);
/// assert_eq!(op.name(), "engine.rope");
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpId(sys::vt_op_id);

impl OpId {
    /// Interns a name: the same name gives the same id.
    pub fn intern(name: &str) -> Result<OpId> {
        let name = CString::new(name).map_err(|_| Error::invalid("vt_op_intern", "the name holds a zero byte"))?;
        let mut id = 0;
        // SAFETY: the name is terminated, and copied.
        check(unsafe { sys::vt_op_intern(name.as_ptr(), &mut id) })?;
        Ok(OpId(id))
    }

    /// The name.
    pub fn name(self) -> String {
        // SAFETY: takes any id.
        text(unsafe { sys::vt_op_get_name(self.0) })
    }

    /// The number in the C interface. Providers have C function types, so they are registered and called through [`crate::sys`].
    pub fn as_raw(self) -> sys::vt_op_id {
        self.0
    }

    /// The name of the provider that serves the operation in general.
    pub fn provider(self, kind: DeviceType) -> Result<String> {
        let mut provider = std::ptr::null();
        // SAFETY: a valid out-parameter; no descriptor means "in general".
        check(unsafe { sys::vt_op_get(self.0, kind.as_raw(), std::ptr::null(), &mut provider) })?;
        // SAFETY: a provider lives as long as the process.
        Ok(text(unsafe { (*provider).name }))
    }
}
