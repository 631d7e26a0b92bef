//! Operation providers: who implements an operation on a type of device.
//!
//! Providers are registered and called through [`crate::sys`], since they have C function types. Here is what an engine needs to steer
//! the choice among them and to watch it. `VT_OP_PROVIDER_DISABLE` in the environment, names separated by commas, disables providers
//! like [`disable`]; it is read once, on first use of the library.
//!
//! ```
//! use vllm_cpp_sys::op::{self, Policy};
//! use vllm_cpp_sys::{DeviceType, OpId, Status};
//!
//! let all_reduce = OpId::intern("vt.all_reduce")?;
//! let ours = Policy { names: Some(&["nccl", "vt-native"]), ..Policy::default() };
//! assert_eq!(all_reduce.find(DeviceType::Cpu, &ours)?, "vt-native");
//!
//! // Strictly, the first choice or nobody.
//! let strict = Policy { strict: true, ..ours };
//! assert_eq!(all_reduce.find(DeviceType::Cpu, &strict).unwrap_err().status, Status::NotFound);
//! println!("{}", all_reduce.explain(DeviceType::Cpu, &strict)?);
//!
//! op::disable("vt-native")?;
//! assert!(all_reduce.find(DeviceType::Cpu, &ours).is_err());
//! op::enable("vt-native")?;
//! # Ok::<(), vllm_cpp_sys::Error>(())
//! ```

use std::ffi::{CString, c_char};
use std::ptr;

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
        let name = terminated("vt_op_intern", name)?;
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

    /// The name of the provider that serves the operation in general, under a policy.
    pub fn find(self, kind: DeviceType, policy: &Policy<'_>) -> Result<String> {
        let policy = RawPolicy::new("vt_op_get_with", policy)?;
        let mut provider = ptr::null();
        // SAFETY: the policy lives through the call; a valid out-parameter; no name below, no descriptor.
        check(unsafe { sys::vt_op_get_with(self.0, kind.as_raw(), &policy.as_raw(), ptr::null(), ptr::null(), &mut provider) })?;
        // SAFETY: a provider lives as long as the process.
        Ok(text(unsafe { (*provider).name }))
    }

    /// Whether the operation has a provider, be it disabled. The reference tier is none.
    pub fn is_registered(self, kind: DeviceType) -> bool {
        // SAFETY: takes any numbers.
        unsafe { sys::vt_op_is_registered(self.0, kind.as_raw()) != 0 }
    }

    /// How a look-up would choose now, in words: every provider, and what was refused and why.
    pub fn explain(self, kind: DeviceType, policy: &Policy<'_>) -> Result<String> {
        let policy = RawPolicy::new("vt_op_explain", policy)?;
        let raw = policy.as_raw();
        let mut buffer = vec![0u8; 256];
        loop {
            let room = buffer.as_mut_ptr().cast::<c_char>();
            // SAFETY: the policy lives through the call, which writes at most the buffer's length.
            let length = unsafe { sys::vt_op_explain(self.0, kind.as_raw(), &raw, ptr::null(), room, buffer.len()) };
            if length == 0 {
                return Err(Error::from_raw(sys::VT_ERR_INVALID_ARGUMENT));
            }
            if length < buffer.len() {
                buffer.truncate(length);
                return Ok(String::from_utf8_lossy(&buffer).into_owned());
            }
            buffer.resize(length + 1, 0);
        }
    }

    /// The name of the provider that was selected last.
    pub fn last_selected(self, kind: DeviceType) -> Option<String> {
        // SAFETY: takes any numbers; the name lives as long as the process.
        let name = unsafe { sys::vt_op_get_last_selected(self.0, kind.as_raw()) };
        (!name.is_null()).then(|| text(name))
    }

    /// What a provider, or the reference tier, did so far.
    pub fn statistics(self, kind: DeviceType, provider: &str) -> Result<Statistics> {
        let name = terminated("vt_op_provider_get_stats", provider)?;
        let mut raw = sys::vt_op_stats { struct_size: size_of::<sys::vt_op_stats>(), ..Default::default() };
        // SAFETY: the name is terminated; `raw` says how large it is.
        check(unsafe { sys::vt_op_provider_get_stats(self.0, kind.as_raw(), name.as_ptr(), &mut raw) })?;
        let reasons = raw.reasons.iter().filter(|refusal| !refusal.reason.is_null());
        Ok(Statistics {
            selections: raw.selections,
            fallbacks: raw.fallbacks,
            declines: raw.declines,
            disabled: raw.disabled != 0,
            last_reason: (!raw.last_reason.is_null()).then(|| text(raw.last_reason)),
            reasons: reasons.map(|refusal| (text(refusal.reason), refusal.count)).collect(),
        })
    }
}

/// How one look-up chooses. The default: all providers, by priority, each standing in for those above.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy<'a> {
    /// These providers only, in this order.
    pub names: Option<&'a [&'a str]>,
    /// The first choice serves the call, or nobody does.
    pub strict: bool,
}

/// The C form of a policy, and what it points to.
struct RawPolicy {
    _names: Vec<CString>,
    pointers: Option<Vec<*const c_char>>,
    flags: u32,
}

impl RawPolicy {
    fn new(function: &str, policy: &Policy<'_>) -> Result<RawPolicy> {
        let names = policy.names.unwrap_or_default();
        let names = names.iter().map(|name| terminated(function, name)).collect::<Result<Vec<_>>>()?;
        let pointers = policy.names.map(|_| names.iter().map(|name| name.as_ptr()).collect());
        Ok(RawPolicy { _names: names, pointers, flags: if policy.strict { sys::VT_OP_STRICT } else { 0 } })
    }

    fn as_raw(&self) -> sys::vt_op_policy {
        let names = self.pointers.as_deref();
        sys::vt_op_policy {
            struct_size: size_of::<sys::vt_op_policy>(),
            flags: self.flags,
            names: names.map_or(ptr::null(), |names| names.as_ptr()),
            count: names.map_or(0, |names| names.len()),
        }
    }
}

/// What a provider did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Look-ups that found it; for the reference tier, calls queued.
    pub selections: u64,
    /// Among these, those where others had refused or declined before.
    pub fallbacks: u64,
    /// Look-ups that passed it over since it refused, and calls that it declined.
    pub declines: u64,
    /// Whether it is disabled now.
    pub disabled: bool,
    /// Why it declined last.
    pub last_reason: Option<String>,
    /// How often it gave which reason, in order of appearance; beyond some distinct ones they are counted together.
    pub reasons: Vec<(String, u64)>,
}

fn terminated(function: &str, name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::invalid(function, "the name holds a zero byte"))
}

/// Disables all providers of a name, also those to be registered later, and the reference tier by its name, `vt-cpu-ref`.
pub fn disable(name: &str) -> Result<()> {
    let name = terminated("vt_op_provider_disable", name)?;
    // SAFETY: the name is terminated, and copied.
    check(unsafe { sys::vt_op_provider_disable(name.as_ptr()) })
}

/// Enables all providers of a name again, whoever disabled them.
pub fn enable(name: &str) -> Result<()> {
    let name = terminated("vt_op_provider_enable", name)?;
    // SAFETY: the name is terminated.
    check(unsafe { sys::vt_op_provider_enable(name.as_ptr()) })
}

/// Forbids or allows, for the whole process, that another provider or the reference tier stands in where the first choice refuses.
pub fn set_strict(strict: bool) {
    // SAFETY: takes any number.
    unsafe { sys::vt_op_set_strict(strict.into()) }
}

/// A number that changes with everything that may change a choice: keep what a look-up found as long as it stays the same.
pub fn generation() -> u64 {
    // SAFETY: has no arguments.
    unsafe { sys::vt_op_get_generation() }
}
