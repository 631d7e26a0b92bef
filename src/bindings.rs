// Generated from c/include/vllm_vt/vt.h by scripts/bindings. Do not edit.

pub const VT_VERSION_MAJOR: i32 = 0;
pub const VT_VERSION_MINOR: i32 = 1;
pub const VT_VERSION_PATCH: i32 = 0;
pub const VT_VERSION: i32 = 100;
pub const VT_ERROR_MESSAGE_MAX: usize = 512;
pub const VT_MAX_DEVICES_PER_TYPE: i32 = 16;
pub const VT_BACKEND_ABI_MAJOR: u32 = 1;
pub const VT_BACKEND_ABI_MINOR: u32 = 1;
pub const VT_HOST_CALL_PAYLOAD: usize = 80;
pub const VT_COMM_MAX_WORLD: i32 = 1024;
pub const VT_OP_NATIVE_NAME: &[u8; 10] = b"vt-native\0";
pub const VT_OP_NATIVE_PRIORITY: i32 = 0;
pub const VT_OP_STATS_REASONS: usize = 6;
pub const VT_OP_REFERENCE_NAME: &[u8; 11] = b"vt-cpu-ref\0";
pub const VT_OP_REFERENCE_PRIORITY: i32 = -1000;
pub const VT_OP_REFERENCE_ARGS_MAX: usize = 72;
pub const VT_VALIDATE_KIND_COUNT: u32 = 9;
pub type vt_fn = ::core::option::Option<unsafe extern "C" fn()>;
pub type vt_status = i32;
pub const VT_OK: vt_status = 0;
pub const VT_NOT_READY: vt_status = 1;
pub const VT_ERR_INVALID_ARGUMENT: vt_status = -1;
pub const VT_ERR_OUT_OF_MEMORY: vt_status = -2;
pub const VT_ERR_UNSUPPORTED: vt_status = -3;
pub const VT_ERR_NOT_FOUND: vt_status = -4;
pub const VT_ERR_ALREADY_EXISTS: vt_status = -5;
pub const VT_ERR_FAILED_PRECONDITION: vt_status = -6;
pub const VT_ERR_TIMEOUT: vt_status = -7;
pub const VT_ERR_ABORTED: vt_status = -8;
pub const VT_ERR_PEER_LOST: vt_status = -9;
pub const VT_ERR_MISMATCH: vt_status = -10;
pub const VT_ERR_DEVICE_LOST: vt_status = -11;
pub const VT_ERR_INTERNAL: vt_status = -12;
pub type vt_error_domain = i32;
pub const VT_DOMAIN_VT: vt_error_domain = 0;
pub const VT_DOMAIN_ERRNO: vt_error_domain = 1;
pub const VT_DOMAIN_CUDA: vt_error_domain = 2;
pub const VT_DOMAIN_NCCL: vt_error_domain = 3;
pub const VT_DOMAIN_MPI: vt_error_domain = 4;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_error {
    pub status: vt_status,
    pub domain: vt_error_domain,
    pub native: i64,
    pub function: *const ::core::ffi::c_char,
    pub message: *const ::core::ffi::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_error"][::core::mem::size_of::<vt_error>() - 32usize];
    ["Alignment of vt_error"][::core::mem::align_of::<vt_error>() - 8usize];
    ["Offset of field: vt_error::status"][::core::mem::offset_of!(vt_error, status) - 0usize];
    ["Offset of field: vt_error::domain"][::core::mem::offset_of!(vt_error, domain) - 4usize];
    ["Offset of field: vt_error::native"][::core::mem::offset_of!(vt_error, native) - 8usize];
    ["Offset of field: vt_error::function"][::core::mem::offset_of!(vt_error, function) - 16usize];
    ["Offset of field: vt_error::message"][::core::mem::offset_of!(vt_error, message) - 24usize];
};
impl Default for vt_error {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_device_type = i32;
pub const VT_DEVICE_CPU: vt_device_type = 0;
pub const VT_DEVICE_CUDA: vt_device_type = 1;
pub const VT_DEVICE_METAL: vt_device_type = 2;
pub const VT_DEVICE_VULKAN: vt_device_type = 3;
pub const VT_DEVICE_XPU: vt_device_type = 4;
pub const VT_DEVICE_TYPE_COUNT: vt_device_type = 5;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_device {
    pub type_: vt_device_type,
    pub index: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_device"][::core::mem::size_of::<vt_device>() - 8usize];
    ["Alignment of vt_device"][::core::mem::align_of::<vt_device>() - 4usize];
    ["Offset of field: vt_device::type_"][::core::mem::offset_of!(vt_device, type_) - 0usize];
    ["Offset of field: vt_device::index"][::core::mem::offset_of!(vt_device, index) - 4usize];
};
pub const VT_CAP_ASYNC_QUEUES: u32 = 1;
pub const VT_CAP_EVENTS: u32 = 2;
pub const VT_CAP_GRAPH_CAPTURE: u32 = 4;
pub const VT_CAP_AUX_QUEUE: u32 = 8;
pub const VT_CAP_STREAM_ALLOC: u32 = 16;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_device_info {
    pub struct_size: usize,
    pub unified_memory: i32,
    pub host_addressable: i32,
    pub compute_major: i32,
    pub compute_minor: i32,
    pub memory_free: u64,
    pub memory_total: u64,
    pub caps: u32,
    pub name: [::core::ffi::c_char; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_device_info"][::core::mem::size_of::<vt_device_info>() - 112usize];
    ["Alignment of vt_device_info"][::core::mem::align_of::<vt_device_info>() - 8usize];
    ["Offset of field: vt_device_info::struct_size"][::core::mem::offset_of!(vt_device_info, struct_size) - 0usize];
    ["Offset of field: vt_device_info::unified_memory"][::core::mem::offset_of!(vt_device_info, unified_memory) - 8usize];
    ["Offset of field: vt_device_info::host_addressable"][::core::mem::offset_of!(vt_device_info, host_addressable) - 12usize];
    ["Offset of field: vt_device_info::compute_major"][::core::mem::offset_of!(vt_device_info, compute_major) - 16usize];
    ["Offset of field: vt_device_info::compute_minor"][::core::mem::offset_of!(vt_device_info, compute_minor) - 20usize];
    ["Offset of field: vt_device_info::memory_free"][::core::mem::offset_of!(vt_device_info, memory_free) - 24usize];
    ["Offset of field: vt_device_info::memory_total"][::core::mem::offset_of!(vt_device_info, memory_total) - 32usize];
    ["Offset of field: vt_device_info::caps"][::core::mem::offset_of!(vt_device_info, caps) - 40usize];
    ["Offset of field: vt_device_info::name"][::core::mem::offset_of!(vt_device_info, name) - 44usize];
};
impl Default for vt_device_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_dtype = i32;
pub const VT_DTYPE_F32: vt_dtype = 0;
pub const VT_DTYPE_F16: vt_dtype = 1;
pub const VT_DTYPE_BF16: vt_dtype = 2;
pub const VT_DTYPE_I8: vt_dtype = 3;
pub const VT_DTYPE_I32: vt_dtype = 4;
pub const VT_DTYPE_I64: vt_dtype = 5;
pub const VT_DTYPE_Q4_0: vt_dtype = 6;
pub const VT_DTYPE_Q8_0: vt_dtype = 7;
pub const VT_DTYPE_Q3_K: vt_dtype = 8;
pub const VT_DTYPE_Q4_K: vt_dtype = 9;
pub const VT_DTYPE_Q5_K: vt_dtype = 10;
pub const VT_DTYPE_Q6_K: vt_dtype = 11;
pub const VT_DTYPE_Q8_K: vt_dtype = 12;
pub const VT_DTYPE_F64: vt_dtype = 13;
pub const VT_DTYPE_U8: vt_dtype = 14;
pub const VT_DTYPE_F8_E4M3: vt_dtype = 15;
pub const VT_DTYPE_F8_E5M2: vt_dtype = 16;
pub const VT_DTYPE_COUNT: vt_dtype = 17;
#[repr(C)]
#[derive(Debug)]
pub struct vt_arena {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_arena_mark {
    pub arena_id: u64,
    pub resets: u64,
    pub used: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_arena_mark"][::core::mem::size_of::<vt_arena_mark>() - 24usize];
    ["Alignment of vt_arena_mark"][::core::mem::align_of::<vt_arena_mark>() - 8usize];
    ["Offset of field: vt_arena_mark::arena_id"][::core::mem::offset_of!(vt_arena_mark, arena_id) - 0usize];
    ["Offset of field: vt_arena_mark::resets"][::core::mem::offset_of!(vt_arena_mark, resets) - 8usize];
    ["Offset of field: vt_arena_mark::used"][::core::mem::offset_of!(vt_arena_mark, used) - 16usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_arena_stats {
    pub struct_size: usize,
    pub capacity: usize,
    pub used: usize,
    pub high_water: usize,
    pub resets: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_arena_stats"][::core::mem::size_of::<vt_arena_stats>() - 40usize];
    ["Alignment of vt_arena_stats"][::core::mem::align_of::<vt_arena_stats>() - 8usize];
    ["Offset of field: vt_arena_stats::struct_size"][::core::mem::offset_of!(vt_arena_stats, struct_size) - 0usize];
    ["Offset of field: vt_arena_stats::capacity"][::core::mem::offset_of!(vt_arena_stats, capacity) - 8usize];
    ["Offset of field: vt_arena_stats::used"][::core::mem::offset_of!(vt_arena_stats, used) - 16usize];
    ["Offset of field: vt_arena_stats::high_water"][::core::mem::offset_of!(vt_arena_stats, high_water) - 24usize];
    ["Offset of field: vt_arena_stats::resets"][::core::mem::offset_of!(vt_arena_stats, resets) - 32usize];
};
#[repr(C)]
#[derive(Debug)]
pub struct vt_queue {
    _unused: [u8; 0],
}
pub const VT_QUEUE_ASYNC: u32 = 1;
pub const VT_QUEUE_FAIL_FULL: u32 = 2;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_queue_options {
    pub struct_size: usize,
    pub flags: u32,
    pub ring_capacity: u32,
    pub name: *const ::core::ffi::c_char,
    pub cpu_mask: u64,
    pub priority: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_queue_options"][::core::mem::size_of::<vt_queue_options>() - 40usize];
    ["Alignment of vt_queue_options"][::core::mem::align_of::<vt_queue_options>() - 8usize];
    ["Offset of field: vt_queue_options::struct_size"][::core::mem::offset_of!(vt_queue_options, struct_size) - 0usize];
    ["Offset of field: vt_queue_options::flags"][::core::mem::offset_of!(vt_queue_options, flags) - 8usize];
    ["Offset of field: vt_queue_options::ring_capacity"][::core::mem::offset_of!(vt_queue_options, ring_capacity) - 12usize];
    ["Offset of field: vt_queue_options::name"][::core::mem::offset_of!(vt_queue_options, name) - 16usize];
    ["Offset of field: vt_queue_options::cpu_mask"][::core::mem::offset_of!(vt_queue_options, cpu_mask) - 24usize];
    ["Offset of field: vt_queue_options::priority"][::core::mem::offset_of!(vt_queue_options, priority) - 32usize];
};
impl Default for vt_queue_options {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_host_fn = ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void) -> vt_status>;
#[repr(C)]
#[derive(Debug)]
pub struct vt_event {
    _unused: [u8; 0],
}
pub const VT_EVENT_BLOCKING: u32 = 1;
pub const VT_EVENT_TIMING: u32 = 2;
pub const VT_EVENT_SPINNING: u32 = 4;
pub const VT_EVENT_YIELDING: u32 = 8;
pub type vt_wait_mode = i32;
pub const VT_WAIT_MODE_DEFAULT: vt_wait_mode = 0;
pub const VT_WAIT_MODE_BLOCK: vt_wait_mode = 1;
pub const VT_WAIT_MODE_YIELD: vt_wait_mode = 2;
pub const VT_WAIT_MODE_SPIN: vt_wait_mode = 3;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_copy_op {
    pub dst: *mut ::core::ffi::c_void,
    pub src: *const ::core::ffi::c_void,
    pub bytes: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_copy_op"][::core::mem::size_of::<vt_copy_op>() - 24usize];
    ["Alignment of vt_copy_op"][::core::mem::align_of::<vt_copy_op>() - 8usize];
    ["Offset of field: vt_copy_op::dst"][::core::mem::offset_of!(vt_copy_op, dst) - 0usize];
    ["Offset of field: vt_copy_op::src"][::core::mem::offset_of!(vt_copy_op, src) - 8usize];
    ["Offset of field: vt_copy_op::bytes"][::core::mem::offset_of!(vt_copy_op, bytes) - 16usize];
};
impl Default for vt_copy_op {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_memory_stats {
    pub struct_size: usize,
    pub live_bytes: u64,
    pub peak_bytes: u64,
    pub live_count: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_memory_stats"][::core::mem::size_of::<vt_memory_stats>() - 32usize];
    ["Alignment of vt_memory_stats"][::core::mem::align_of::<vt_memory_stats>() - 8usize];
    ["Offset of field: vt_memory_stats::struct_size"][::core::mem::offset_of!(vt_memory_stats, struct_size) - 0usize];
    ["Offset of field: vt_memory_stats::live_bytes"][::core::mem::offset_of!(vt_memory_stats, live_bytes) - 8usize];
    ["Offset of field: vt_memory_stats::peak_bytes"][::core::mem::offset_of!(vt_memory_stats, peak_bytes) - 16usize];
    ["Offset of field: vt_memory_stats::live_count"][::core::mem::offset_of!(vt_memory_stats, live_count) - 24usize];
};
pub const VT_MEMORY_DEVICE: i32 = 0;
pub const VT_MEMORY_PINNED: i32 = 1;
pub const VT_ALLOC_SHAREABLE: u32 = 1;
pub const VT_ALLOC_HUGE_PAGES: u32 = 2;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_alloc_options {
    pub struct_size: usize,
    pub kind: i32,
    pub flags: u32,
    pub numa_node: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_alloc_options"][::core::mem::size_of::<vt_alloc_options>() - 24usize];
    ["Alignment of vt_alloc_options"][::core::mem::align_of::<vt_alloc_options>() - 8usize];
    ["Offset of field: vt_alloc_options::struct_size"][::core::mem::offset_of!(vt_alloc_options, struct_size) - 0usize];
    ["Offset of field: vt_alloc_options::kind"][::core::mem::offset_of!(vt_alloc_options, kind) - 8usize];
    ["Offset of field: vt_alloc_options::flags"][::core::mem::offset_of!(vt_alloc_options, flags) - 12usize];
    ["Offset of field: vt_alloc_options::numa_node"][::core::mem::offset_of!(vt_alloc_options, numa_node) - 16usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_memory_info {
    pub struct_size: usize,
    pub bytes: usize,
    pub kind: i32,
    pub flags: u32,
    pub numa_node: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_memory_info"][::core::mem::size_of::<vt_memory_info>() - 32usize];
    ["Alignment of vt_memory_info"][::core::mem::align_of::<vt_memory_info>() - 8usize];
    ["Offset of field: vt_memory_info::struct_size"][::core::mem::offset_of!(vt_memory_info, struct_size) - 0usize];
    ["Offset of field: vt_memory_info::bytes"][::core::mem::offset_of!(vt_memory_info, bytes) - 8usize];
    ["Offset of field: vt_memory_info::kind"][::core::mem::offset_of!(vt_memory_info, kind) - 16usize];
    ["Offset of field: vt_memory_info::flags"][::core::mem::offset_of!(vt_memory_info, flags) - 20usize];
    ["Offset of field: vt_memory_info::numa_node"][::core::mem::offset_of!(vt_memory_info, numa_node) - 24usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_host_call {
    pub run: ::core::option::Option<unsafe extern "C" fn(payload: *mut ::core::ffi::c_void) -> vt_status>,
    pub cancel: ::core::option::Option<unsafe extern "C" fn(payload: *mut ::core::ffi::c_void)>,
    pub drop: ::core::option::Option<unsafe extern "C" fn(payload: *mut ::core::ffi::c_void)>,
    pub payload: [u64; 10usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_host_call"][::core::mem::size_of::<vt_host_call>() - 104usize];
    ["Alignment of vt_host_call"][::core::mem::align_of::<vt_host_call>() - 8usize];
    ["Offset of field: vt_host_call::run"][::core::mem::offset_of!(vt_host_call, run) - 0usize];
    ["Offset of field: vt_host_call::cancel"][::core::mem::offset_of!(vt_host_call, cancel) - 8usize];
    ["Offset of field: vt_host_call::drop"][::core::mem::offset_of!(vt_host_call, drop) - 16usize];
    ["Offset of field: vt_host_call::payload"][::core::mem::offset_of!(vt_host_call, payload) - 24usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_backend_ops {
    pub struct_size: usize,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub alloc: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, bytes: usize, out_ptr: *mut *mut ::core::ffi::c_void) -> vt_status,
    >,
    pub free:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, ptr: *mut ::core::ffi::c_void) -> vt_status>,
    pub pinned_alloc: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, bytes: usize, out_ptr: *mut *mut ::core::ffi::c_void) -> vt_status,
    >,
    pub pinned_free:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, ptr: *mut ::core::ffi::c_void) -> vt_status>,
    pub copy: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            dst: *mut ::core::ffi::c_void,
            src: *const ::core::ffi::c_void,
            bytes: usize,
        ) -> vt_status,
    >,
    pub memset: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            ptr: *mut ::core::ffi::c_void,
            value: u8,
            bytes: usize,
        ) -> vt_status,
    >,
    pub queue_create: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            options: *const vt_queue_options,
            id: u64,
            out_queue: *mut *mut ::core::ffi::c_void,
        ) -> vt_status,
    >,
    pub queue_destroy: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            done: ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void)>,
            user: *mut ::core::ffi::c_void,
        ),
    >,
    pub queue_synchronize:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, queue: *mut ::core::ffi::c_void) -> vt_status>,
    pub queue_query:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, queue: *mut ::core::ffi::c_void) -> vt_status>,
    pub queue_get_ticket: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, queue: *mut ::core::ffi::c_void, out_ticket: *mut u64) -> vt_status,
    >,
    pub queue_wait_ticket: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            ticket: u64,
            timeout_ns: u64,
        ) -> vt_status,
    >,
    pub queue_host_call: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            call: *const vt_host_call,
        ) -> vt_status,
    >,
    pub queue_get_native: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, queue: *mut ::core::ffi::c_void) -> *mut ::core::ffi::c_void,
    >,
    pub event_create: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, flags: u32, out_event: *mut *mut ::core::ffi::c_void) -> vt_status,
    >,
    pub event_destroy:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, event: *mut ::core::ffi::c_void)>,
    pub event_record: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            event: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
        ) -> vt_status,
    >,
    pub event_query:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, event: *mut ::core::ffi::c_void) -> vt_status>,
    pub event_wait: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, event: *mut ::core::ffi::c_void, timeout_ns: u64) -> vt_status,
    >,
    pub queue_after_event: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            event: *mut ::core::ffi::c_void,
        ) -> vt_status,
    >,
    pub event_get_elapsed: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            start: *mut ::core::ffi::c_void,
            end: *mut ::core::ffi::c_void,
            out_ns: *mut u64,
        ) -> vt_status,
    >,
    pub event_get_native: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, event: *mut ::core::ffi::c_void) -> *mut ::core::ffi::c_void,
    >,
    pub capture_begin:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, queue: *mut ::core::ffi::c_void) -> vt_status>,
    pub capture_end: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            out_graph: *mut *mut ::core::ffi::c_void,
        ) -> vt_status,
    >,
    pub capture_abort:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, queue: *mut ::core::ffi::c_void) -> vt_status>,
    pub graph_launch: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            graph: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
        ) -> vt_status,
    >,
    pub graph_destroy:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, graph: *mut ::core::ffi::c_void)>,
    pub graph_get_node_count: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, graph: *mut ::core::ffi::c_void, out_count: *mut usize) -> vt_status,
    >,
    pub graph_get_native: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, graph: *mut ::core::ffi::c_void) -> *mut ::core::ffi::c_void,
    >,
    pub get_info:
        ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, out_info: *mut vt_device_info) -> vt_status>,
    pub flush: ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void) -> vt_status>,
    pub event_wait_by: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            event: *mut ::core::ffi::c_void,
            mode: vt_wait_mode,
            timeout_ns: u64,
        ) -> vt_status,
    >,
    pub copy_batch: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            ops: *const vt_copy_op,
            count: usize,
        ) -> vt_status,
    >,
    pub copy_2d: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            queue: *mut ::core::ffi::c_void,
            dst: *mut ::core::ffi::c_void,
            dst_pitch: usize,
            src: *const ::core::ffi::c_void,
            src_pitch: usize,
            width: usize,
            rows: usize,
        ) -> vt_status,
    >,
    pub alloc_with: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            bytes: usize,
            options: *mut vt_alloc_options,
            out_ptr: *mut *mut ::core::ffi::c_void,
        ) -> vt_status,
    >,
    pub export_fd: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ::core::ffi::c_void,
            ptr: *const ::core::ffi::c_void,
            out_fd: *mut i32,
            out_offset: *mut usize,
            out_bytes: *mut usize,
        ) -> vt_status,
    >,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_backend_ops"][::core::mem::size_of::<vt_backend_ops>() - 304usize];
    ["Alignment of vt_backend_ops"][::core::mem::align_of::<vt_backend_ops>() - 8usize];
    ["Offset of field: vt_backend_ops::struct_size"][::core::mem::offset_of!(vt_backend_ops, struct_size) - 0usize];
    ["Offset of field: vt_backend_ops::abi_major"][::core::mem::offset_of!(vt_backend_ops, abi_major) - 8usize];
    ["Offset of field: vt_backend_ops::abi_minor"][::core::mem::offset_of!(vt_backend_ops, abi_minor) - 12usize];
    ["Offset of field: vt_backend_ops::alloc"][::core::mem::offset_of!(vt_backend_ops, alloc) - 16usize];
    ["Offset of field: vt_backend_ops::free"][::core::mem::offset_of!(vt_backend_ops, free) - 24usize];
    ["Offset of field: vt_backend_ops::pinned_alloc"][::core::mem::offset_of!(vt_backend_ops, pinned_alloc) - 32usize];
    ["Offset of field: vt_backend_ops::pinned_free"][::core::mem::offset_of!(vt_backend_ops, pinned_free) - 40usize];
    ["Offset of field: vt_backend_ops::copy"][::core::mem::offset_of!(vt_backend_ops, copy) - 48usize];
    ["Offset of field: vt_backend_ops::memset"][::core::mem::offset_of!(vt_backend_ops, memset) - 56usize];
    ["Offset of field: vt_backend_ops::queue_create"][::core::mem::offset_of!(vt_backend_ops, queue_create) - 64usize];
    ["Offset of field: vt_backend_ops::queue_destroy"][::core::mem::offset_of!(vt_backend_ops, queue_destroy) - 72usize];
    ["Offset of field: vt_backend_ops::queue_synchronize"][::core::mem::offset_of!(vt_backend_ops, queue_synchronize) - 80usize];
    ["Offset of field: vt_backend_ops::queue_query"][::core::mem::offset_of!(vt_backend_ops, queue_query) - 88usize];
    ["Offset of field: vt_backend_ops::queue_get_ticket"][::core::mem::offset_of!(vt_backend_ops, queue_get_ticket) - 96usize];
    ["Offset of field: vt_backend_ops::queue_wait_ticket"][::core::mem::offset_of!(vt_backend_ops, queue_wait_ticket) - 104usize];
    ["Offset of field: vt_backend_ops::queue_host_call"][::core::mem::offset_of!(vt_backend_ops, queue_host_call) - 112usize];
    ["Offset of field: vt_backend_ops::queue_get_native"][::core::mem::offset_of!(vt_backend_ops, queue_get_native) - 120usize];
    ["Offset of field: vt_backend_ops::event_create"][::core::mem::offset_of!(vt_backend_ops, event_create) - 128usize];
    ["Offset of field: vt_backend_ops::event_destroy"][::core::mem::offset_of!(vt_backend_ops, event_destroy) - 136usize];
    ["Offset of field: vt_backend_ops::event_record"][::core::mem::offset_of!(vt_backend_ops, event_record) - 144usize];
    ["Offset of field: vt_backend_ops::event_query"][::core::mem::offset_of!(vt_backend_ops, event_query) - 152usize];
    ["Offset of field: vt_backend_ops::event_wait"][::core::mem::offset_of!(vt_backend_ops, event_wait) - 160usize];
    ["Offset of field: vt_backend_ops::queue_after_event"][::core::mem::offset_of!(vt_backend_ops, queue_after_event) - 168usize];
    ["Offset of field: vt_backend_ops::event_get_elapsed"][::core::mem::offset_of!(vt_backend_ops, event_get_elapsed) - 176usize];
    ["Offset of field: vt_backend_ops::event_get_native"][::core::mem::offset_of!(vt_backend_ops, event_get_native) - 184usize];
    ["Offset of field: vt_backend_ops::capture_begin"][::core::mem::offset_of!(vt_backend_ops, capture_begin) - 192usize];
    ["Offset of field: vt_backend_ops::capture_end"][::core::mem::offset_of!(vt_backend_ops, capture_end) - 200usize];
    ["Offset of field: vt_backend_ops::capture_abort"][::core::mem::offset_of!(vt_backend_ops, capture_abort) - 208usize];
    ["Offset of field: vt_backend_ops::graph_launch"][::core::mem::offset_of!(vt_backend_ops, graph_launch) - 216usize];
    ["Offset of field: vt_backend_ops::graph_destroy"][::core::mem::offset_of!(vt_backend_ops, graph_destroy) - 224usize];
    ["Offset of field: vt_backend_ops::graph_get_node_count"]
        [::core::mem::offset_of!(vt_backend_ops, graph_get_node_count) - 232usize];
    ["Offset of field: vt_backend_ops::graph_get_native"][::core::mem::offset_of!(vt_backend_ops, graph_get_native) - 240usize];
    ["Offset of field: vt_backend_ops::get_info"][::core::mem::offset_of!(vt_backend_ops, get_info) - 248usize];
    ["Offset of field: vt_backend_ops::flush"][::core::mem::offset_of!(vt_backend_ops, flush) - 256usize];
    ["Offset of field: vt_backend_ops::event_wait_by"][::core::mem::offset_of!(vt_backend_ops, event_wait_by) - 264usize];
    ["Offset of field: vt_backend_ops::copy_batch"][::core::mem::offset_of!(vt_backend_ops, copy_batch) - 272usize];
    ["Offset of field: vt_backend_ops::copy_2d"][::core::mem::offset_of!(vt_backend_ops, copy_2d) - 280usize];
    ["Offset of field: vt_backend_ops::alloc_with"][::core::mem::offset_of!(vt_backend_ops, alloc_with) - 288usize];
    ["Offset of field: vt_backend_ops::export_fd"][::core::mem::offset_of!(vt_backend_ops, export_fd) - 296usize];
};
#[repr(C)]
#[derive(Debug)]
pub struct vt_backend {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_device_resource_ops {
    pub struct_size: usize,
    pub alloc: ::core::option::Option<
        unsafe extern "C" fn(device: vt_device, bytes: usize, out_ptr: *mut *mut ::core::ffi::c_void) -> vt_status,
    >,
    pub free: ::core::option::Option<unsafe extern "C" fn(device: vt_device, ptr: *mut ::core::ffi::c_void) -> vt_status>,
    pub create_queue: ::core::option::Option<
        unsafe extern "C" fn(
            device: vt_device,
            options: *const vt_queue_options,
            id: u64,
            out_queue: *mut *mut ::core::ffi::c_void,
        ) -> vt_status,
    >,
    pub destroy_queue: ::core::option::Option<
        unsafe extern "C" fn(
            device: vt_device,
            queue: *mut ::core::ffi::c_void,
            done: ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void)>,
            user: *mut ::core::ffi::c_void,
        ),
    >,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_device_resource_ops"][::core::mem::size_of::<vt_device_resource_ops>() - 40usize];
    ["Alignment of vt_device_resource_ops"][::core::mem::align_of::<vt_device_resource_ops>() - 8usize];
    ["Offset of field: vt_device_resource_ops::struct_size"][::core::mem::offset_of!(vt_device_resource_ops, struct_size) - 0usize];
    ["Offset of field: vt_device_resource_ops::alloc"][::core::mem::offset_of!(vt_device_resource_ops, alloc) - 8usize];
    ["Offset of field: vt_device_resource_ops::free"][::core::mem::offset_of!(vt_device_resource_ops, free) - 16usize];
    ["Offset of field: vt_device_resource_ops::create_queue"]
        [::core::mem::offset_of!(vt_device_resource_ops, create_queue) - 24usize];
    ["Offset of field: vt_device_resource_ops::destroy_queue"]
        [::core::mem::offset_of!(vt_device_resource_ops, destroy_queue) - 32usize];
};
#[repr(C)]
#[derive(Debug)]
pub struct vt_comm {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct vt_comm_group {
    _unused: [u8; 0],
}
pub type vt_comm_chunk_fn =
    ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void, rank: i32, sequence: u64, chunk: usize)>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_comm_group_options {
    pub struct_size: usize,
    pub timeout_ns: u64,
    pub devices: *const vt_device,
    pub chunk_hook: vt_comm_chunk_fn,
    pub chunk_user: *mut ::core::ffi::c_void,
    pub algorithms: *const ::core::ffi::c_char,
    pub wait: vt_wait_mode,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_comm_group_options"][::core::mem::size_of::<vt_comm_group_options>() - 56usize];
    ["Alignment of vt_comm_group_options"][::core::mem::align_of::<vt_comm_group_options>() - 8usize];
    ["Offset of field: vt_comm_group_options::struct_size"][::core::mem::offset_of!(vt_comm_group_options, struct_size) - 0usize];
    ["Offset of field: vt_comm_group_options::timeout_ns"][::core::mem::offset_of!(vt_comm_group_options, timeout_ns) - 8usize];
    ["Offset of field: vt_comm_group_options::devices"][::core::mem::offset_of!(vt_comm_group_options, devices) - 16usize];
    ["Offset of field: vt_comm_group_options::chunk_hook"][::core::mem::offset_of!(vt_comm_group_options, chunk_hook) - 24usize];
    ["Offset of field: vt_comm_group_options::chunk_user"][::core::mem::offset_of!(vt_comm_group_options, chunk_user) - 32usize];
    ["Offset of field: vt_comm_group_options::algorithms"][::core::mem::offset_of!(vt_comm_group_options, algorithms) - 40usize];
    ["Offset of field: vt_comm_group_options::wait"][::core::mem::offset_of!(vt_comm_group_options, wait) - 48usize];
};
impl Default for vt_comm_group_options {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_reduce_op = i32;
pub const VT_REDUCE_SUM: vt_reduce_op = 0;
pub const VT_REDUCE_MAX: vt_reduce_op = 1;
pub const VT_REDUCE_MIN: vt_reduce_op = 2;
pub const VT_REDUCE_PROD: vt_reduce_op = 3;
pub const VT_REDUCE_AVG: vt_reduce_op = 4;
pub const VT_REDUCE_COUNT: vt_reduce_op = 5;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_comm_call {
    pub struct_size: usize,
    pub timeout_ns: u64,
    pub sequence: u64,
    pub provider: *const ::core::ffi::c_char,
    pub wait: vt_wait_mode,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_comm_call"][::core::mem::size_of::<vt_comm_call>() - 40usize];
    ["Alignment of vt_comm_call"][::core::mem::align_of::<vt_comm_call>() - 8usize];
    ["Offset of field: vt_comm_call::struct_size"][::core::mem::offset_of!(vt_comm_call, struct_size) - 0usize];
    ["Offset of field: vt_comm_call::timeout_ns"][::core::mem::offset_of!(vt_comm_call, timeout_ns) - 8usize];
    ["Offset of field: vt_comm_call::sequence"][::core::mem::offset_of!(vt_comm_call, sequence) - 16usize];
    ["Offset of field: vt_comm_call::provider"][::core::mem::offset_of!(vt_comm_call, provider) - 24usize];
    ["Offset of field: vt_comm_call::wait"][::core::mem::offset_of!(vt_comm_call, wait) - 32usize];
};
impl Default for vt_comm_call {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_comm_op = i32;
pub const VT_COMM_OP_NONE: vt_comm_op = 0;
pub const VT_COMM_OP_ALL_REDUCE: vt_comm_op = 1;
pub const VT_COMM_OP_ALL_GATHER: vt_comm_op = 2;
pub const VT_COMM_OP_SEND: vt_comm_op = 3;
pub const VT_COMM_OP_RECV: vt_comm_op = 4;
pub const VT_COMM_OP_BARRIER: vt_comm_op = 5;
pub const VT_COMM_OP_REDUCE: vt_comm_op = 6;
pub const VT_COMM_OP_BROADCAST: vt_comm_op = 7;
pub const VT_COMM_OP_GATHER: vt_comm_op = 8;
pub const VT_COMM_OP_SCATTER: vt_comm_op = 9;
pub const VT_COMM_OP_REDUCE_SCATTER: vt_comm_op = 10;
pub const VT_COMM_OP_ALL_TO_ALL: vt_comm_op = 11;
pub const VT_COMM_OP_ALL_GATHERV: vt_comm_op = 12;
pub const VT_COMM_OP_REDUCE_SCATTERV: vt_comm_op = 13;
pub const VT_COMM_OP_ALL_TO_ALLV: vt_comm_op = 14;
pub const VT_COMM_OP_SPLIT: vt_comm_op = 15;
pub const VT_COMM_OP_FINALIZE: vt_comm_op = 16;
pub const VT_COMM_OP_COUNT: vt_comm_op = 17;
pub type vt_comm_state = i32;
pub const VT_COMM_STATE_STARTED: vt_comm_state = 0;
pub const VT_COMM_STATE_WAITING: vt_comm_state = 1;
pub const VT_COMM_STATE_MOVING: vt_comm_state = 2;
pub const VT_COMM_STATE_FINISHED: vt_comm_state = 3;
pub const VT_COMM_STATE_FAILED: vt_comm_state = 4;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_comm_record {
    pub sequence: u64,
    pub count: u64,
    pub start_ticks: u64,
    pub end_ticks: u64,
    pub op: vt_comm_op,
    pub dtype: vt_dtype,
    pub reduce_op: vt_reduce_op,
    pub peer: i32,
    pub state: vt_comm_state,
    pub status: vt_status,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_comm_record"][::core::mem::size_of::<vt_comm_record>() - 56usize];
    ["Alignment of vt_comm_record"][::core::mem::align_of::<vt_comm_record>() - 8usize];
    ["Offset of field: vt_comm_record::sequence"][::core::mem::offset_of!(vt_comm_record, sequence) - 0usize];
    ["Offset of field: vt_comm_record::count"][::core::mem::offset_of!(vt_comm_record, count) - 8usize];
    ["Offset of field: vt_comm_record::start_ticks"][::core::mem::offset_of!(vt_comm_record, start_ticks) - 16usize];
    ["Offset of field: vt_comm_record::end_ticks"][::core::mem::offset_of!(vt_comm_record, end_ticks) - 24usize];
    ["Offset of field: vt_comm_record::op"][::core::mem::offset_of!(vt_comm_record, op) - 32usize];
    ["Offset of field: vt_comm_record::dtype"][::core::mem::offset_of!(vt_comm_record, dtype) - 36usize];
    ["Offset of field: vt_comm_record::reduce_op"][::core::mem::offset_of!(vt_comm_record, reduce_op) - 40usize];
    ["Offset of field: vt_comm_record::peer"][::core::mem::offset_of!(vt_comm_record, peer) - 44usize];
    ["Offset of field: vt_comm_record::state"][::core::mem::offset_of!(vt_comm_record, state) - 48usize];
    ["Offset of field: vt_comm_record::status"][::core::mem::offset_of!(vt_comm_record, status) - 52usize];
};
pub const VT_COMM_GUARANTEE_SAME_BITS: u32 = 1;
pub const VT_COMM_GUARANTEE_WIDE_HALVES: u32 = 2;
pub const VT_COMM_GUARANTEE_NAN_PROPAGATES: u32 = 4;
pub const VT_COMM_GUARANTEE_MISMATCH_FOUND: u32 = 8;
pub const VT_COMM_GUARANTEE_SEND_IS_MATCHED: u32 = 16;
pub const VT_COMM_GUARANTEE_QUIET_RETURN: u32 = 32;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_comm_health {
    pub struct_size: usize,
    pub last_sequence: u64,
    pub last_op: vt_comm_op,
    pub last_state: vt_comm_state,
    pub last_status: vt_status,
    pub world: i32,
    pub alive: i32,
    pub status: vt_status,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_comm_health"][::core::mem::size_of::<vt_comm_health>() - 40usize];
    ["Alignment of vt_comm_health"][::core::mem::align_of::<vt_comm_health>() - 8usize];
    ["Offset of field: vt_comm_health::struct_size"][::core::mem::offset_of!(vt_comm_health, struct_size) - 0usize];
    ["Offset of field: vt_comm_health::last_sequence"][::core::mem::offset_of!(vt_comm_health, last_sequence) - 8usize];
    ["Offset of field: vt_comm_health::last_op"][::core::mem::offset_of!(vt_comm_health, last_op) - 16usize];
    ["Offset of field: vt_comm_health::last_state"][::core::mem::offset_of!(vt_comm_health, last_state) - 20usize];
    ["Offset of field: vt_comm_health::last_status"][::core::mem::offset_of!(vt_comm_health, last_status) - 24usize];
    ["Offset of field: vt_comm_health::world"][::core::mem::offset_of!(vt_comm_health, world) - 28usize];
    ["Offset of field: vt_comm_health::alive"][::core::mem::offset_of!(vt_comm_health, alive) - 32usize];
    ["Offset of field: vt_comm_health::status"][::core::mem::offset_of!(vt_comm_health, status) - 36usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_comm_descriptor {
    pub struct_size: usize,
    pub comm: *mut vt_comm,
    pub queue: *mut vt_queue,
    pub count: usize,
    pub op: vt_comm_op,
    pub dtype: vt_dtype,
    pub reduce_op: vt_reduce_op,
    pub peer: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_comm_descriptor"][::core::mem::size_of::<vt_comm_descriptor>() - 48usize];
    ["Alignment of vt_comm_descriptor"][::core::mem::align_of::<vt_comm_descriptor>() - 8usize];
    ["Offset of field: vt_comm_descriptor::struct_size"][::core::mem::offset_of!(vt_comm_descriptor, struct_size) - 0usize];
    ["Offset of field: vt_comm_descriptor::comm"][::core::mem::offset_of!(vt_comm_descriptor, comm) - 8usize];
    ["Offset of field: vt_comm_descriptor::queue"][::core::mem::offset_of!(vt_comm_descriptor, queue) - 16usize];
    ["Offset of field: vt_comm_descriptor::count"][::core::mem::offset_of!(vt_comm_descriptor, count) - 24usize];
    ["Offset of field: vt_comm_descriptor::op"][::core::mem::offset_of!(vt_comm_descriptor, op) - 32usize];
    ["Offset of field: vt_comm_descriptor::dtype"][::core::mem::offset_of!(vt_comm_descriptor, dtype) - 36usize];
    ["Offset of field: vt_comm_descriptor::reduce_op"][::core::mem::offset_of!(vt_comm_descriptor, reduce_op) - 40usize];
    ["Offset of field: vt_comm_descriptor::peer"][::core::mem::offset_of!(vt_comm_descriptor, peer) - 44usize];
};
impl Default for vt_comm_descriptor {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_comm_all_reduce_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_all_gather_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_send_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        buffer: *const ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        peer: i32,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_recv_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        buffer: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        peer: i32,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_barrier_fn =
    ::core::option::Option<unsafe extern "C" fn(comm: *mut vt_comm, queue: *mut vt_queue, opts: *const vt_comm_call) -> vt_status>;
pub type vt_comm_reduce_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_broadcast_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        buffer: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_gather_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_scatter_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_reduce_scatter_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_all_to_all_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_all_gatherv_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        counts: *const usize,
        displs: *const usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_reduce_scatterv_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        counts: *const usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub type vt_comm_all_to_allv_fn = ::core::option::Option<
    unsafe extern "C" fn(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        send_counts: *const usize,
        send_displs: *const usize,
        recv: *mut ::core::ffi::c_void,
        recv_counts: *const usize,
        recv_displs: *const usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status,
>;
pub const VT_COMM_SPLIT_NONE: i32 = -1;
#[repr(C)]
#[derive(Debug)]
pub struct vt_graph {
    _unused: [u8; 0],
}
pub type vt_handle_kind = i32;
pub const VT_HANDLE_QUEUE: vt_handle_kind = 0;
pub const VT_HANDLE_EVENT: vt_handle_kind = 1;
pub const VT_HANDLE_GRAPH: vt_handle_kind = 2;
pub const VT_HANDLE_ARENA: vt_handle_kind = 3;
pub const VT_HANDLE_COMM: vt_handle_kind = 4;
pub const VT_HANDLE_COMM_GROUP: vt_handle_kind = 5;
pub const VT_HANDLE_KIND_COUNT: vt_handle_kind = 6;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_host_allocator {
    pub struct_size: usize,
    pub alloc: ::core::option::Option<
        unsafe extern "C" fn(user: *mut ::core::ffi::c_void, bytes: usize, align: usize) -> *mut ::core::ffi::c_void,
    >,
    pub free: ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void, ptr: *mut ::core::ffi::c_void)>,
    pub user: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_host_allocator"][::core::mem::size_of::<vt_host_allocator>() - 32usize];
    ["Alignment of vt_host_allocator"][::core::mem::align_of::<vt_host_allocator>() - 8usize];
    ["Offset of field: vt_host_allocator::struct_size"][::core::mem::offset_of!(vt_host_allocator, struct_size) - 0usize];
    ["Offset of field: vt_host_allocator::alloc"][::core::mem::offset_of!(vt_host_allocator, alloc) - 8usize];
    ["Offset of field: vt_host_allocator::free"][::core::mem::offset_of!(vt_host_allocator, free) - 16usize];
    ["Offset of field: vt_host_allocator::user"][::core::mem::offset_of!(vt_host_allocator, user) - 24usize];
};
impl Default for vt_host_allocator {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_log_level = i32;
pub const VT_LOG_OFF: vt_log_level = 0;
pub const VT_LOG_ERROR: vt_log_level = 1;
pub const VT_LOG_WARN: vt_log_level = 2;
pub const VT_LOG_INFO: vt_log_level = 3;
pub const VT_LOG_DEBUG: vt_log_level = 4;
pub type vt_log_fn = ::core::option::Option<
    unsafe extern "C" fn(user: *mut ::core::ffi::c_void, level: vt_log_level, message: *const ::core::ffi::c_char),
>;
pub type vt_trace_kind = i32;
pub const VT_TRACE_COPY: vt_trace_kind = 0;
pub const VT_TRACE_MEMSET: vt_trace_kind = 1;
pub const VT_TRACE_HOST_CALL: vt_trace_kind = 2;
pub const VT_TRACE_WAIT: vt_trace_kind = 3;
pub const VT_TRACE_RECORD: vt_trace_kind = 4;
pub const VT_TRACE_GRAPH: vt_trace_kind = 5;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_trace_event {
    pub kind: vt_trace_kind,
    pub is_end: i32,
    pub queue_id: u64,
    pub bytes: u64,
    pub sequence: u64,
    pub name: *const ::core::ffi::c_char,
    pub queue_name: *const ::core::ffi::c_char,
    pub waits_for: u64,
    pub count: u64,
    pub comm_sequence: u64,
    pub dtype: vt_dtype,
    pub rank: i32,
    pub world: i32,
    pub operations: i32,
    pub branch: i32,
    pub status: vt_status,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_trace_event"][::core::mem::size_of::<vt_trace_event>() - 96usize];
    ["Alignment of vt_trace_event"][::core::mem::align_of::<vt_trace_event>() - 8usize];
    ["Offset of field: vt_trace_event::kind"][::core::mem::offset_of!(vt_trace_event, kind) - 0usize];
    ["Offset of field: vt_trace_event::is_end"][::core::mem::offset_of!(vt_trace_event, is_end) - 4usize];
    ["Offset of field: vt_trace_event::queue_id"][::core::mem::offset_of!(vt_trace_event, queue_id) - 8usize];
    ["Offset of field: vt_trace_event::bytes"][::core::mem::offset_of!(vt_trace_event, bytes) - 16usize];
    ["Offset of field: vt_trace_event::sequence"][::core::mem::offset_of!(vt_trace_event, sequence) - 24usize];
    ["Offset of field: vt_trace_event::name"][::core::mem::offset_of!(vt_trace_event, name) - 32usize];
    ["Offset of field: vt_trace_event::queue_name"][::core::mem::offset_of!(vt_trace_event, queue_name) - 40usize];
    ["Offset of field: vt_trace_event::waits_for"][::core::mem::offset_of!(vt_trace_event, waits_for) - 48usize];
    ["Offset of field: vt_trace_event::count"][::core::mem::offset_of!(vt_trace_event, count) - 56usize];
    ["Offset of field: vt_trace_event::comm_sequence"][::core::mem::offset_of!(vt_trace_event, comm_sequence) - 64usize];
    ["Offset of field: vt_trace_event::dtype"][::core::mem::offset_of!(vt_trace_event, dtype) - 72usize];
    ["Offset of field: vt_trace_event::rank"][::core::mem::offset_of!(vt_trace_event, rank) - 76usize];
    ["Offset of field: vt_trace_event::world"][::core::mem::offset_of!(vt_trace_event, world) - 80usize];
    ["Offset of field: vt_trace_event::operations"][::core::mem::offset_of!(vt_trace_event, operations) - 84usize];
    ["Offset of field: vt_trace_event::branch"][::core::mem::offset_of!(vt_trace_event, branch) - 88usize];
    ["Offset of field: vt_trace_event::status"][::core::mem::offset_of!(vt_trace_event, status) - 92usize];
};
impl Default for vt_trace_event {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_trace_fn = ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void, event: *const vt_trace_event)>;
pub type vt_op_id = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_op_question {
    pub struct_size: usize,
    pub descriptor: *const ::core::ffi::c_void,
    pub caps: *const ::core::ffi::c_void,
    pub caps_bytes: usize,
    pub reason: *const ::core::ffi::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_op_question"][::core::mem::size_of::<vt_op_question>() - 40usize];
    ["Alignment of vt_op_question"][::core::mem::align_of::<vt_op_question>() - 8usize];
    ["Offset of field: vt_op_question::struct_size"][::core::mem::offset_of!(vt_op_question, struct_size) - 0usize];
    ["Offset of field: vt_op_question::descriptor"][::core::mem::offset_of!(vt_op_question, descriptor) - 8usize];
    ["Offset of field: vt_op_question::caps"][::core::mem::offset_of!(vt_op_question, caps) - 16usize];
    ["Offset of field: vt_op_question::caps_bytes"][::core::mem::offset_of!(vt_op_question, caps_bytes) - 24usize];
    ["Offset of field: vt_op_question::reason"][::core::mem::offset_of!(vt_op_question, reason) - 32usize];
};
impl Default for vt_op_question {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_op_provider {
    pub struct_size: usize,
    pub name: *const ::core::ffi::c_char,
    pub priority: i32,
    pub fn_: vt_fn,
    pub supports:
        ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void, question: *mut vt_op_question) -> i32>,
    pub user: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_op_provider"][::core::mem::size_of::<vt_op_provider>() - 48usize];
    ["Alignment of vt_op_provider"][::core::mem::align_of::<vt_op_provider>() - 8usize];
    ["Offset of field: vt_op_provider::struct_size"][::core::mem::offset_of!(vt_op_provider, struct_size) - 0usize];
    ["Offset of field: vt_op_provider::name"][::core::mem::offset_of!(vt_op_provider, name) - 8usize];
    ["Offset of field: vt_op_provider::priority"][::core::mem::offset_of!(vt_op_provider, priority) - 16usize];
    ["Offset of field: vt_op_provider::fn_"][::core::mem::offset_of!(vt_op_provider, fn_) - 24usize];
    ["Offset of field: vt_op_provider::supports"][::core::mem::offset_of!(vt_op_provider, supports) - 32usize];
    ["Offset of field: vt_op_provider::user"][::core::mem::offset_of!(vt_op_provider, user) - 40usize];
};
impl Default for vt_op_provider {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const VT_OP_STRICT: u32 = 1;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_op_policy {
    pub struct_size: usize,
    pub flags: u32,
    pub names: *const *const ::core::ffi::c_char,
    pub count: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_op_policy"][::core::mem::size_of::<vt_op_policy>() - 32usize];
    ["Alignment of vt_op_policy"][::core::mem::align_of::<vt_op_policy>() - 8usize];
    ["Offset of field: vt_op_policy::struct_size"][::core::mem::offset_of!(vt_op_policy, struct_size) - 0usize];
    ["Offset of field: vt_op_policy::flags"][::core::mem::offset_of!(vt_op_policy, flags) - 8usize];
    ["Offset of field: vt_op_policy::names"][::core::mem::offset_of!(vt_op_policy, names) - 16usize];
    ["Offset of field: vt_op_policy::count"][::core::mem::offset_of!(vt_op_policy, count) - 24usize];
};
impl Default for vt_op_policy {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_op_refusal {
    pub reason: *const ::core::ffi::c_char,
    pub count: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_op_refusal"][::core::mem::size_of::<vt_op_refusal>() - 16usize];
    ["Alignment of vt_op_refusal"][::core::mem::align_of::<vt_op_refusal>() - 8usize];
    ["Offset of field: vt_op_refusal::reason"][::core::mem::offset_of!(vt_op_refusal, reason) - 0usize];
    ["Offset of field: vt_op_refusal::count"][::core::mem::offset_of!(vt_op_refusal, count) - 8usize];
};
impl Default for vt_op_refusal {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_op_stats {
    pub struct_size: usize,
    pub selections: u64,
    pub fallbacks: u64,
    pub declines: u64,
    pub disabled: i32,
    pub last_reason: *const ::core::ffi::c_char,
    pub reasons: [vt_op_refusal; 6usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_op_stats"][::core::mem::size_of::<vt_op_stats>() - 144usize];
    ["Alignment of vt_op_stats"][::core::mem::align_of::<vt_op_stats>() - 8usize];
    ["Offset of field: vt_op_stats::struct_size"][::core::mem::offset_of!(vt_op_stats, struct_size) - 0usize];
    ["Offset of field: vt_op_stats::selections"][::core::mem::offset_of!(vt_op_stats, selections) - 8usize];
    ["Offset of field: vt_op_stats::fallbacks"][::core::mem::offset_of!(vt_op_stats, fallbacks) - 16usize];
    ["Offset of field: vt_op_stats::declines"][::core::mem::offset_of!(vt_op_stats, declines) - 24usize];
    ["Offset of field: vt_op_stats::disabled"][::core::mem::offset_of!(vt_op_stats, disabled) - 32usize];
    ["Offset of field: vt_op_stats::last_reason"][::core::mem::offset_of!(vt_op_stats, last_reason) - 40usize];
    ["Offset of field: vt_op_stats::reasons"][::core::mem::offset_of!(vt_op_stats, reasons) - 48usize];
};
impl Default for vt_op_stats {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_op_reference {
    pub struct_size: usize,
    pub fn_: ::core::option::Option<unsafe extern "C" fn(args: *mut ::core::ffi::c_void) -> vt_status>,
    pub args_bytes: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_op_reference"][::core::mem::size_of::<vt_op_reference>() - 24usize];
    ["Alignment of vt_op_reference"][::core::mem::align_of::<vt_op_reference>() - 8usize];
    ["Offset of field: vt_op_reference::struct_size"][::core::mem::offset_of!(vt_op_reference, struct_size) - 0usize];
    ["Offset of field: vt_op_reference::fn_"][::core::mem::offset_of!(vt_op_reference, fn_) - 8usize];
    ["Offset of field: vt_op_reference::args_bytes"][::core::mem::offset_of!(vt_op_reference, args_bytes) - 16usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct vt_pool_stats {
    pub struct_size: usize,
    pub requested_bytes: u64,
    pub used_bytes: u64,
    pub cached_bytes: u64,
    pub peak_bytes: u64,
    pub limit_bytes: u64,
    pub hits: u64,
    pub misses: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_pool_stats"][::core::mem::size_of::<vt_pool_stats>() - 64usize];
    ["Alignment of vt_pool_stats"][::core::mem::align_of::<vt_pool_stats>() - 8usize];
    ["Offset of field: vt_pool_stats::struct_size"][::core::mem::offset_of!(vt_pool_stats, struct_size) - 0usize];
    ["Offset of field: vt_pool_stats::requested_bytes"][::core::mem::offset_of!(vt_pool_stats, requested_bytes) - 8usize];
    ["Offset of field: vt_pool_stats::used_bytes"][::core::mem::offset_of!(vt_pool_stats, used_bytes) - 16usize];
    ["Offset of field: vt_pool_stats::cached_bytes"][::core::mem::offset_of!(vt_pool_stats, cached_bytes) - 24usize];
    ["Offset of field: vt_pool_stats::peak_bytes"][::core::mem::offset_of!(vt_pool_stats, peak_bytes) - 32usize];
    ["Offset of field: vt_pool_stats::limit_bytes"][::core::mem::offset_of!(vt_pool_stats, limit_bytes) - 40usize];
    ["Offset of field: vt_pool_stats::hits"][::core::mem::offset_of!(vt_pool_stats, hits) - 48usize];
    ["Offset of field: vt_pool_stats::misses"][::core::mem::offset_of!(vt_pool_stats, misses) - 56usize];
};
pub type vt_validate_kind = i32;
pub const VT_VALIDATE_RACE: vt_validate_kind = 0;
pub const VT_VALIDATE_USE_AFTER_FREE: vt_validate_kind = 1;
pub const VT_VALIDATE_USE_AFTER_RESET: vt_validate_kind = 2;
pub const VT_VALIDATE_OUT_OF_BOUNDS: vt_validate_kind = 3;
pub const VT_VALIDATE_PENDING: vt_validate_kind = 4;
pub const VT_VALIDATE_FREED_UNDER_GRAPH: vt_validate_kind = 5;
pub const VT_VALIDATE_CAPTURE: vt_validate_kind = 6;
pub const VT_VALIDATE_UNRECORDED_EVENT: vt_validate_kind = 7;
pub const VT_VALIDATE_LIMIT: vt_validate_kind = 8;
pub type vt_validate_severity = i32;
pub const VT_SEVERITY_ERROR: vt_validate_severity = 0;
pub const VT_SEVERITY_NOTICE: vt_validate_severity = 1;
pub const VT_TOUCH_READ: u32 = 1;
pub const VT_TOUCH_WRITE: u32 = 2;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_validate_site {
    pub function: *const ::core::ffi::c_char,
    pub caller: *const ::core::ffi::c_void,
    pub symbol: *const ::core::ffi::c_char,
    pub queue_id: u64,
    pub sequence: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_validate_site"][::core::mem::size_of::<vt_validate_site>() - 40usize];
    ["Alignment of vt_validate_site"][::core::mem::align_of::<vt_validate_site>() - 8usize];
    ["Offset of field: vt_validate_site::function"][::core::mem::offset_of!(vt_validate_site, function) - 0usize];
    ["Offset of field: vt_validate_site::caller"][::core::mem::offset_of!(vt_validate_site, caller) - 8usize];
    ["Offset of field: vt_validate_site::symbol"][::core::mem::offset_of!(vt_validate_site, symbol) - 16usize];
    ["Offset of field: vt_validate_site::queue_id"][::core::mem::offset_of!(vt_validate_site, queue_id) - 24usize];
    ["Offset of field: vt_validate_site::sequence"][::core::mem::offset_of!(vt_validate_site, sequence) - 32usize];
};
impl Default for vt_validate_site {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct vt_validate_report {
    pub struct_size: usize,
    pub kind: vt_validate_kind,
    pub severity: vt_validate_severity,
    pub ptr: *const ::core::ffi::c_void,
    pub bytes: usize,
    pub now: vt_validate_site,
    pub before: vt_validate_site,
    pub message: *const ::core::ffi::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of vt_validate_report"][::core::mem::size_of::<vt_validate_report>() - 120usize];
    ["Alignment of vt_validate_report"][::core::mem::align_of::<vt_validate_report>() - 8usize];
    ["Offset of field: vt_validate_report::struct_size"][::core::mem::offset_of!(vt_validate_report, struct_size) - 0usize];
    ["Offset of field: vt_validate_report::kind"][::core::mem::offset_of!(vt_validate_report, kind) - 8usize];
    ["Offset of field: vt_validate_report::severity"][::core::mem::offset_of!(vt_validate_report, severity) - 12usize];
    ["Offset of field: vt_validate_report::ptr"][::core::mem::offset_of!(vt_validate_report, ptr) - 16usize];
    ["Offset of field: vt_validate_report::bytes"][::core::mem::offset_of!(vt_validate_report, bytes) - 24usize];
    ["Offset of field: vt_validate_report::now"][::core::mem::offset_of!(vt_validate_report, now) - 32usize];
    ["Offset of field: vt_validate_report::before"][::core::mem::offset_of!(vt_validate_report, before) - 72usize];
    ["Offset of field: vt_validate_report::message"][::core::mem::offset_of!(vt_validate_report, message) - 112usize];
};
impl Default for vt_validate_report {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type vt_validate_fn =
    ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void, report: *const vt_validate_report)>;
pub const VT_WAIT_FOREVER: u64 = 18446744073709551615;
pub const VT_COMM_DEFAULT_TIMEOUT_NS: u64 = 60000000000;
unsafe extern "C" {
    pub fn vt_version() -> i32;
    pub fn vt_last_error() -> *const vt_error;
    pub fn vt_error_set(
        status: vt_status,
        domain: vt_error_domain,
        native: i64,
        function: *const ::core::ffi::c_char,
        format: *const ::core::ffi::c_char,
        ...
    ) -> vt_status;
    pub fn vt_status_get_name(status: vt_status) -> *const ::core::ffi::c_char;
    pub fn vt_device_type_get_name(type_: vt_device_type) -> *const ::core::ffi::c_char;
    pub fn vt_device_get_info(device: vt_device, out_info: *mut vt_device_info) -> vt_status;
    pub fn vt_device_get_count(type_: vt_device_type, out_count: *mut i32) -> vt_status;
    pub fn vt_device_flush(device: vt_device) -> vt_status;
    pub fn vt_dtype_get_name(dtype: vt_dtype) -> *const ::core::ffi::c_char;
    pub fn vt_dtype_get_size(dtype: vt_dtype, out_bytes: *mut usize) -> vt_status;
    pub fn vt_dtype_get_block(dtype: vt_dtype, out_elements: *mut usize, out_bytes: *mut usize) -> vt_status;
    pub fn vt_dtype_get_row_bytes(dtype: vt_dtype, elements: i64, out_bytes: *mut usize) -> vt_status;
    pub fn vt_dtype_find_ggml(ggml_type: i32, out_dtype: *mut vt_dtype) -> vt_status;
    pub fn vt_f16_from_f32(value: f32) -> u16;
    pub fn vt_f16_to_f32(bits: u16) -> f32;
    pub fn vt_bf16_from_f32(value: f32) -> u16;
    pub fn vt_bf16_to_f32(bits: u16) -> f32;
    pub fn vt_dtype_convert(
        dst: *mut ::core::ffi::c_void,
        dst_dtype: vt_dtype,
        src: *const ::core::ffi::c_void,
        src_dtype: vt_dtype,
        count: usize,
    ) -> vt_status;
    pub fn vt_arena_create(device: vt_device, capacity: usize, out_arena: *mut *mut vt_arena) -> vt_status;
    pub fn vt_arena_retain(arena: *mut vt_arena) -> vt_status;
    pub fn vt_arena_release(arena: *mut vt_arena);
    pub fn vt_arena_alloc(arena: *mut vt_arena, bytes: usize, out_ptr: *mut *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_arena_alloc_elements(
        arena: *mut vt_arena,
        count: usize,
        dtype: vt_dtype,
        out_ptr: *mut *mut ::core::ffi::c_void,
    ) -> vt_status;
    pub fn vt_arena_reset(arena: *mut vt_arena) -> vt_status;
    pub fn vt_arena_get_mark(arena: *mut vt_arena, out_mark: *mut vt_arena_mark) -> vt_status;
    pub fn vt_arena_rewind(arena: *mut vt_arena, mark: vt_arena_mark) -> vt_status;
    pub fn vt_arena_get_stats(arena: *mut vt_arena, out_stats: *mut vt_arena_stats) -> vt_status;
    pub fn vt_arena_get_device(arena: *mut vt_arena, out_device: *mut vt_device) -> vt_status;
    pub fn vt_queue_create(device: vt_device, options: *const vt_queue_options, out_queue: *mut *mut vt_queue) -> vt_status;
    pub fn vt_queue_retain(queue: *mut vt_queue) -> vt_status;
    pub fn vt_queue_release(queue: *mut vt_queue);
    pub fn vt_queue_destroy(queue: *mut vt_queue) -> vt_status;
    pub fn vt_queue_synchronize(queue: *mut vt_queue) -> vt_status;
    pub fn vt_queue_query(queue: *mut vt_queue) -> vt_status;
    pub fn vt_queue_get_ticket(queue: *mut vt_queue, out_ticket: *mut u64) -> vt_status;
    pub fn vt_queue_wait_ticket(queue: *mut vt_queue, ticket: u64, timeout_ns: u64) -> vt_status;
    pub fn vt_queue_host_func(
        queue: *mut vt_queue,
        fn_: vt_host_fn,
        user: *mut ::core::ffi::c_void,
        drop: ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void)>,
    ) -> vt_status;
    pub fn vt_queue_on_destroy(
        queue: *mut vt_queue,
        fn_: ::core::option::Option<unsafe extern "C" fn(user: *mut ::core::ffi::c_void)>,
        user: *mut ::core::ffi::c_void,
    ) -> vt_status;
    pub fn vt_queue_get_device(queue: *mut vt_queue, out_device: *mut vt_device) -> vt_status;
    pub fn vt_queue_get_id(queue: *mut vt_queue) -> u64;
    pub fn vt_queue_get_native(queue: *mut vt_queue) -> *mut ::core::ffi::c_void;
    pub fn vt_queue_is_synchronous(queue: *mut vt_queue) -> i32;
    pub fn vt_event_create(device: vt_device, flags: u32, out_event: *mut *mut vt_event) -> vt_status;
    pub fn vt_event_retain(event: *mut vt_event) -> vt_status;
    pub fn vt_event_release(event: *mut vt_event);
    pub fn vt_event_record(event: *mut vt_event, queue: *mut vt_queue) -> vt_status;
    pub fn vt_event_synchronize(event: *mut vt_event) -> vt_status;
    pub fn vt_event_wait(event: *mut vt_event, timeout_ns: u64) -> vt_status;
    pub fn vt_event_wait_by(event: *mut vt_event, mode: vt_wait_mode, timeout_ns: u64) -> vt_status;
    pub fn vt_event_query(event: *mut vt_event) -> vt_status;
    pub fn vt_queue_after_event(queue: *mut vt_queue, event: *mut vt_event) -> vt_status;
    pub fn vt_event_get_elapsed(start: *mut vt_event, end: *mut vt_event, out_ns: *mut u64) -> vt_status;
    pub fn vt_event_get_device(event: *mut vt_event, out_device: *mut vt_device) -> vt_status;
    pub fn vt_event_get_id(event: *mut vt_event) -> u64;
    pub fn vt_event_get_native(event: *mut vt_event) -> *mut ::core::ffi::c_void;
    pub fn vt_alloc(device: vt_device, bytes: usize, out_ptr: *mut *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_free(device: vt_device, ptr: *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_pinned_alloc(device: vt_device, bytes: usize, out_ptr: *mut *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_pinned_free(device: vt_device, ptr: *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_copy(queue: *mut vt_queue, dst: *mut ::core::ffi::c_void, src: *const ::core::ffi::c_void, bytes: usize)
    -> vt_status;
    pub fn vt_copy_batch(queue: *mut vt_queue, ops: *const vt_copy_op, count: usize) -> vt_status;
    pub fn vt_copy_2d(
        queue: *mut vt_queue,
        dst: *mut ::core::ffi::c_void,
        dst_pitch: usize,
        src: *const ::core::ffi::c_void,
        src_pitch: usize,
        width: usize,
        rows: usize,
    ) -> vt_status;
    pub fn vt_memset(queue: *mut vt_queue, ptr: *mut ::core::ffi::c_void, value: i32, bytes: usize) -> vt_status;
    pub fn vt_memory_get_stats(device: vt_device, kind: i32, out_stats: *mut vt_memory_stats) -> vt_status;
    pub fn vt_alloc_with(
        device: vt_device,
        bytes: usize,
        options: *const vt_alloc_options,
        out_ptr: *mut *mut ::core::ffi::c_void,
    ) -> vt_status;
    pub fn vt_memory_get_info(device: vt_device, ptr: *const ::core::ffi::c_void, out_info: *mut vt_memory_info) -> vt_status;
    pub fn vt_memory_export_fd(
        device: vt_device,
        ptr: *const ::core::ffi::c_void,
        out_fd: *mut i32,
        out_offset: *mut usize,
        out_bytes: *mut usize,
    ) -> vt_status;
    pub fn vt_backend_register(
        device: vt_device,
        name: *const ::core::ffi::c_char,
        ops: *const vt_backend_ops,
        self_: *mut ::core::ffi::c_void,
    ) -> vt_status;
    pub fn vt_backend_get(device: vt_device, out_backend: *mut *const vt_backend) -> vt_status;
    pub fn vt_backend_find(device: vt_device) -> *const vt_backend;
    pub fn vt_backend_get_default(type_: vt_device_type, out_backend: *mut *const vt_backend) -> vt_status;
    pub fn vt_backend_find_default(type_: vt_device_type) -> *const vt_backend;
    pub fn vt_backend_get_name(backend: *const vt_backend) -> *const ::core::ffi::c_char;
    pub fn vt_device_resource_register(device: vt_device, ops: *const vt_device_resource_ops) -> vt_status;
    pub fn vt_comm_group_create(world: i32, options: *const vt_comm_group_options, out_group: *mut *mut vt_comm_group)
    -> vt_status;
    pub fn vt_comm_group_retain(group: *mut vt_comm_group) -> vt_status;
    pub fn vt_comm_group_release(group: *mut vt_comm_group);
    pub fn vt_comm_group_get_world(group: *mut vt_comm_group) -> i32;
    pub fn vt_comm_group_get_comm(group: *mut vt_comm_group, rank: i32, out_comm: *mut *mut vt_comm) -> vt_status;
    pub fn vt_comm_group_describe(group: *mut vt_comm_group, buffer: *mut ::core::ffi::c_char, capacity: usize) -> usize;
    pub fn vt_comm_group_describe_algorithms(group: *mut vt_comm_group, buffer: *mut ::core::ffi::c_char, capacity: usize)
    -> usize;
    pub fn vt_comm_retain(comm: *mut vt_comm) -> vt_status;
    pub fn vt_comm_release(comm: *mut vt_comm);
    pub fn vt_comm_get_rank(comm: *mut vt_comm) -> i32;
    pub fn vt_comm_get_world(comm: *mut vt_comm) -> i32;
    pub fn vt_comm_get_device(comm: *mut vt_comm, out_device: *mut vt_device) -> vt_status;
    pub fn vt_comm_get_transport(comm: *mut vt_comm) -> *const ::core::ffi::c_char;
    pub fn vt_comm_query(comm: *mut vt_comm) -> vt_status;
    pub fn vt_comm_abort(comm: *mut vt_comm, reason: *const ::core::ffi::c_char) -> vt_status;
    pub fn vt_comm_all_reduce(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_all_gather(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_send(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        buffer: *const ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        peer: i32,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_recv(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        buffer: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        peer: i32,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_barrier(comm: *mut vt_comm, queue: *mut vt_queue, opts: *const vt_comm_call) -> vt_status;
    pub fn vt_comm_batch_begin() -> vt_status;
    pub fn vt_comm_batch_end() -> vt_status;
    pub fn vt_comm_batch_abandon() -> vt_status;
    pub fn vt_comm_get_records(
        comm: *mut vt_comm,
        records: *mut vt_comm_record,
        capacity: usize,
        out_count: *mut usize,
    ) -> vt_status;
    pub fn vt_comm_get_guarantees(comm: *mut vt_comm, out_guarantees: *mut u32) -> vt_status;
    pub fn vt_comm_get_health(comm: *mut vt_comm, out_health: *mut vt_comm_health) -> vt_status;
    pub fn vt_comm_reduce(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_broadcast(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        buffer: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_gather(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_scatter(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        root: i32,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_reduce_scatter(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_all_to_all(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        count: usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_all_gatherv(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        counts: *const usize,
        displs: *const usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_reduce_scatterv(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        recv: *mut ::core::ffi::c_void,
        counts: *const usize,
        dtype: vt_dtype,
        op: vt_reduce_op,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_all_to_allv(
        comm: *mut vt_comm,
        queue: *mut vt_queue,
        send: *const ::core::ffi::c_void,
        send_counts: *const usize,
        send_displs: *const usize,
        recv: *mut ::core::ffi::c_void,
        recv_counts: *const usize,
        recv_displs: *const usize,
        dtype: vt_dtype,
        opts: *const vt_comm_call,
    ) -> vt_status;
    pub fn vt_comm_split(
        comm: *mut vt_comm,
        color: i32,
        key: i32,
        opts: *const vt_comm_call,
        out_comm: *mut *mut vt_comm,
    ) -> vt_status;
    pub fn vt_comm_finalize(comm: *mut vt_comm, opts: *const vt_comm_call) -> vt_status;
    pub fn vt_graph_begin_capture(queue: *mut vt_queue) -> vt_status;
    pub fn vt_graph_end_capture(queue: *mut vt_queue, out_graph: *mut *mut vt_graph) -> vt_status;
    pub fn vt_graph_abort_capture(queue: *mut vt_queue) -> vt_status;
    pub fn vt_graph_launch(graph: *mut vt_graph, queue: *mut vt_queue) -> vt_status;
    pub fn vt_queue_replay(queue: *mut vt_queue) -> vt_status;
    pub fn vt_queue_is_capturing(queue: *mut vt_queue) -> i32;
    pub fn vt_graph_retain(graph: *mut vt_graph) -> vt_status;
    pub fn vt_graph_release(graph: *mut vt_graph);
    pub fn vt_graph_get_node_count(graph: *mut vt_graph, out_count: *mut usize) -> vt_status;
    pub fn vt_graph_get_device(graph: *mut vt_graph, out_device: *mut vt_device) -> vt_status;
    pub fn vt_graph_get_id(graph: *mut vt_graph) -> u64;
    pub fn vt_graph_get_native(graph: *mut vt_graph) -> *mut ::core::ffi::c_void;
    pub fn vt_handle_get_live_count(kind: vt_handle_kind) -> usize;
    pub fn vt_host_concurrency() -> u32;
    pub fn vt_host_allocator_set(allocator: *const vt_host_allocator) -> vt_status;
    pub fn vt_log_set(fn_: vt_log_fn, user: *mut ::core::ffi::c_void, level: vt_log_level) -> vt_status;
    pub fn vt_trace_set(fn_: vt_trace_fn, user: *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_op_intern(name: *const ::core::ffi::c_char, out_id: *mut vt_op_id) -> vt_status;
    pub fn vt_op_get_name(op: vt_op_id) -> *const ::core::ffi::c_char;
    pub fn vt_op_provider_register(op: vt_op_id, type_: vt_device_type, provider: *const vt_op_provider) -> vt_status;
    pub fn vt_op_is_registered(op: vt_op_id, type_: vt_device_type) -> i32;
    pub fn vt_op_get(
        op: vt_op_id,
        type_: vt_device_type,
        descriptor: *const ::core::ffi::c_void,
        out_provider: *mut *const vt_op_provider,
    ) -> vt_status;
    pub fn vt_op_get_below(
        op: vt_op_id,
        type_: vt_device_type,
        name: *const ::core::ffi::c_char,
        descriptor: *const ::core::ffi::c_void,
        out_provider: *mut *const vt_op_provider,
    ) -> vt_status;
    pub fn vt_op_get_with(
        op: vt_op_id,
        type_: vt_device_type,
        policy: *const vt_op_policy,
        below: *const ::core::ffi::c_char,
        descriptor: *const ::core::ffi::c_void,
        out_provider: *mut *const vt_op_provider,
    ) -> vt_status;
    pub fn vt_op_provider_disable(name: *const ::core::ffi::c_char) -> vt_status;
    pub fn vt_op_provider_enable(name: *const ::core::ffi::c_char) -> vt_status;
    pub fn vt_op_set_strict(strict: i32);
    pub fn vt_op_caps_publish(type_: vt_device_type, caps: *const ::core::ffi::c_void, bytes: usize) -> vt_status;
    pub fn vt_op_get_generation() -> u64;
    pub fn vt_op_provider_get_stats(
        op: vt_op_id,
        type_: vt_device_type,
        name: *const ::core::ffi::c_char,
        out_stats: *mut vt_op_stats,
    ) -> vt_status;
    pub fn vt_op_get_last_selected(op: vt_op_id, type_: vt_device_type) -> *const ::core::ffi::c_char;
    pub fn vt_op_explain(
        op: vt_op_id,
        type_: vt_device_type,
        policy: *const vt_op_policy,
        descriptor: *const ::core::ffi::c_void,
        buffer: *mut ::core::ffi::c_char,
        capacity: usize,
    ) -> usize;
    pub fn vt_op_reference_register(op: vt_op_id, reference: *const vt_op_reference) -> vt_status;
    pub fn vt_op_call_reference(op: vt_op_id, queue: *mut vt_queue, args: *const ::core::ffi::c_void) -> vt_status;
    pub fn vt_alloc_async(queue: *mut vt_queue, bytes: usize, out_ptr: *mut *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_free_async(queue: *mut vt_queue, ptr: *mut ::core::ffi::c_void) -> vt_status;
    pub fn vt_pool_get_stats(device: vt_device, out_stats: *mut vt_pool_stats) -> vt_status;
    pub fn vt_pool_set_limit(device: vt_device, bytes: usize) -> vt_status;
    pub fn vt_pool_trim(device: vt_device, keep_bytes: usize) -> vt_status;
    pub fn vt_trace_file_begin(path: *const ::core::ffi::c_char) -> vt_status;
    pub fn vt_trace_file_end() -> vt_status;
    pub fn vt_validate_enable() -> vt_status;
    pub fn vt_validate_disable() -> vt_status;
    pub fn vt_validate_is_enabled() -> i32;
    pub fn vt_validate_set(fn_: vt_validate_fn, user: *mut ::core::ffi::c_void);
    pub fn vt_validate_get_count(kind: vt_validate_kind) -> u64;
    pub fn vt_validate_kind_get_name(kind: vt_validate_kind) -> *const ::core::ffi::c_char;
    pub fn vt_validate_touch(queue: *mut vt_queue, ptr: *const ::core::ffi::c_void, bytes: usize, mode: u32) -> vt_status;
    pub fn vt_validate_host_access(ptr: *const ::core::ffi::c_void, bytes: usize, mode: u32) -> vt_status;
}
