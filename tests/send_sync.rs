//! The table of `Send` and `Sync` in the crate's documentation says what the compiler says, of every type that the crate exports.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use vllm_cpp_sys::*;

struct Probe<T: ?Sized>(PhantomData<T>);

/// Answers where the inherent constants below aren't there.
trait Otherwise {
    const SEND: bool = false;
    const SYNC: bool = false;
}

impl<T: ?Sized> Otherwise for Probe<T> {}

impl<T: ?Sized + Send> Probe<T> {
    const SEND: bool = true;
}

impl<T: ?Sized + Sync> Probe<T> {
    const SYNC: bool = true;
}

macro_rules! facts {
    ($($name:literal: $kind:ty),* $(,)?) => {
        BTreeMap::from([$(($name, (<Probe<$kind>>::SEND, <Probe<$kind>>::SYNC))),*])
    };
}

fn facts() -> BTreeMap<&'static str, (bool, bool)> {
    facts! {
        "AbortHandle": AbortHandle, "AllocInfo": AllocInfo, "AllocOptions": AllocOptions, "Arena": Arena, "ArenaScope": ArenaScope<'static>, "ArenaStats": ArenaStats,
        "Batch": Batch<'static>, "Bf16": Bf16, "Comm": Comm, "CommCall": CommCall<'static>, "CommGroup": CommGroup,
        "CommGroupOptions": CommGroupOptions, "DType": DType, "Device": Device, "DeviceBuf": DeviceBuf<f32>,
        "DeviceInfo": DeviceInfo, "DeviceType": DeviceType, "Domain": Domain, "Error": Error, "Event": Event,
        "EventFlags": EventFlags, "EventFuture": EventFuture, "F16": F16, "Graph": Graph, "Guarantees": Guarantees, "Health": Health, "MemoryKind": MemoryKind,
        "MemoryStats": MemoryStats, "OpId": OpId, "PinnedBuf": PinnedBuf<f32>, "PoolStats": PoolStats, "Queue": Queue, "QueueOptions": QueueOptions,
        "ReadView": ReadView<'static, f32>, "ReduceOp": ReduceOp, "Rows": Rows, "Scope": Scope<'static, 'static>, "SharedMemory": SharedMemory,
        "Slice": Slice<'static, f32>, "SliceMut": SliceMut<'static, f32>, "Status": Status,
        "WaitMode": WaitMode, "WriteView": WriteView<'static, f32>, "backend::HostCall": backend::HostCall, "backend::QueueDone": backend::QueueDone,
        "backend::QueueRequest": backend::QueueRequest, "dlpack::ManagedTensor": dlpack::ManagedTensor,
    }
}

/// The names and answers of the table.
fn table() -> BTreeMap<String, (bool, bool)> {
    let text = include_str!("../src/lib.rs");
    let rows = text.lines().filter(|line| line.starts_with("//! | ["));
    let mut table = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_start_matches("//! ").split('|').map(str::trim).collect();
        let &[_, names, send, sync, _] = &cells[..] else { panic!("a row of {} cells: {row}", cells.len()) };
        for name in names.split(", ") {
            let name = name.strip_prefix("[`").and_then(|name| name.strip_suffix("`]")).unwrap_or_else(|| panic!("{name}?"));
            let before = table.insert(name.to_string(), (send == "yes", sync == "yes"));
            assert_eq!(before, None, "{name} has two rows");
        }
    }
    table
}

#[test]
fn the_table_says_what_the_compiler_says() {
    let facts: BTreeMap<String, (bool, bool)> = facts().into_iter().map(|(name, fact)| (name.to_string(), fact)).collect();
    for (name, fact) in &facts {
        assert_eq!(table().get(name), Some(fact), "{name}: (Send, Sync) in the table of src/lib.rs, and in fact");
    }
    assert_eq!(table(), facts);
}

#[test]
fn every_type_has_a_row() {
    let not_types = ["Element", "HostArg", "HostArgs", "Reducible", "Result", "Scalar"];
    let text = include_str!("../src/lib.rs");
    // What a feature adds has its answer from the type that it wraps.
    let exports = text.lines().filter(|line| line.starts_with("pub use ") && !line.contains("plain::"));
    for export in exports {
        let (_, names) = export.trim_end_matches(';').rsplit_once("::").unwrap();
        for name in names.trim_matches(['{', '}']).split(", ").filter(|name| name.starts_with(char::is_uppercase)) {
            assert!(not_types.contains(&name) || table().contains_key(name), "{name} has no row in the table of src/lib.rs");
        }
    }
}
