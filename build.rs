//! Compiles the C runtime, or links the one in `VT_LIB_DIR`, and tells dependants where its headers and the library are.
//!
//! The sources are those of `c/sources.txt`, the list that CMake reads too. A dependant's build script finds the headers in
//! `DEP_VLLM_VT_INCLUDE` and `libvllm_vt.a` in `DEP_VLLM_VT_ROOT`. Nothing is written outside `OUT_DIR`, and nothing that was compiled
//! for the target is run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    declare_inputs();
    if let Err(refusal) = build() {
        println!("cargo::error={refusal}");
    }
}

fn build() -> Result<(), String> {
    let c = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("c");
    let prebuilt = env::var_os("VT_LIB_DIR").map(PathBuf::from);
    emit_metadata(&c, prebuilt.as_deref().unwrap_or(&out_dir()));
    if env::var_os("DOCS_RS").is_some() {
        return use_kept_bindings(); // documentation needs no native code
    }
    refuse_other_platforms()?;
    match prebuilt {
        Some(folder) => link_prebuilt(&folder)?,
        None => compile(&c),
    }
    #[cfg(feature = "bindgen")]
    bindings::write(&c.join("include"), &out_dir().join("bindings.rs"));
    Ok(())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: build.rs is run by cargo"))
}

fn out_dir() -> PathBuf {
    PathBuf::from(variable("OUT_DIR"))
}

/// Directories stand for all files below them.
fn declare_inputs() {
    for path in ["build.rs", "c/sources.txt", "c/include", "c/src"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for name in ["DOCS_RS", "LIBCLANG_PATH", "VT_BUILD_SANITIZE", "VT_LIB_DIR", "VT_LIB_KIND"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
}

/// `library` is the folder that the library is linked from.
fn emit_metadata(c: &Path, library: &Path) {
    println!("cargo::metadata=include={}", c.join("include").display());
    println!("cargo::metadata=root={}", library.display());
    println!("cargo::rustc-env=VLLM_VT_LIB_DIR={}", library.display());
    println!("cargo::rustc-env=VLLM_VT_TARGET={}", variable("TARGET"));
}

/// The feature bindgen reads the bindings from `OUT_DIR`, also where there is no libclang to make them with.
fn use_kept_bindings() -> Result<(), String> {
    let out = out_dir().join("bindings.rs");
    fs::copy("src/bindings.rs", &out).map(drop).map_err(|error| format!("{}: {error}", out.display()))
}

fn refuse_other_platforms() -> Result<(), String> {
    let is = |name: &str, value: &str| variable(&format!("CARGO_CFG_TARGET_{name}")) == value;
    let supported =
        is("OS", "linux") && (is("ARCH", "x86_64") || is("ARCH", "aarch64")) && is("POINTER_WIDTH", "64") && is("ENDIAN", "little");
    let target = variable("TARGET");
    if supported { Ok(()) } else { Err(format!("vllm-cpp-sys runs on Linux on x86_64 and aarch64, not on {target}")) }
}

/// Links the library of a packager: `libvllm_vt.so` or `libvllm_vt.a` in `folder`, as `VT_LIB_KIND` says, the first one by default.
fn link_prebuilt(folder: &Path) -> Result<(), String> {
    let shared = folder.join("libvllm_vt.so");
    let (kind, file) = match env::var("VT_LIB_KIND").as_deref() {
        Ok("shared") => ("dylib", shared),
        Ok("static") => ("static", folder.join("libvllm_vt.a")),
        Ok(other) => return Err(format!("VT_LIB_KIND={other}: expected static or shared")),
        Err(_) if shared.exists() => ("dylib", shared),
        Err(_) => ("static", folder.join("libvllm_vt.a")),
    };
    check_version(&file)?;
    println!("cargo::rerun-if-changed={}", file.display());
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib={kind}=vllm_vt");
    Ok(())
}

/// The library carries its version as a text (`version.c`), so that it can be read without running code of the target.
fn check_version(file: &Path) -> Result<(), String> {
    const MARK: &[u8] = b"libvllm_vt version ";
    let at = |what: &dyn std::fmt::Display| format!("VT_LIB_DIR: {}: {what}", file.display());
    let bytes = fs::read(file).map_err(|error| at(&error))?;
    let mark = bytes.windows(MARK.len()).position(|window| window == MARK);
    let found = mark.map(|start| &bytes[start + MARK.len()..]).and_then(|rest| rest.split(|&byte| byte == 0).next());
    let found = String::from_utf8_lossy(found.ok_or_else(|| at(&"not a libvllm_vt: it names no version"))?);
    let wanted = variable("CARGO_PKG_VERSION");
    // Before 1.0 a minor version may break the interface.
    let same_minor = wanted.rsplit_once('.').map(|wanted| wanted.0) == found.rsplit_once('.').map(|found| found.0);
    if same_minor { Ok(()) } else { Err(at(&format!("it is version {found}, and this crate needs {wanted}"))) }
}

/// Reads the source list: one path relative to `c/` a line, `#` begins a comment.
fn listed_sources(c: &Path) -> Vec<PathBuf> {
    let list = c.join("sources.txt");
    let text = fs::read_to_string(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(|line| c.join(line))
        .collect()
}

/// Debug information follows the profile; optimisation does not: collectives are as fast in a debug build.
fn compile(c: &Path) {
    let mut build = cc::Build::new();
    build
        .files(listed_sources(c))
        .include(c.join("include"))
        .include(c.join("src"))
        .std("c11")
        .define("_GNU_SOURCE", None)
        .opt_level(3)
        .flag("-ffp-contract=off")
        .flag("-fvisibility=hidden")
        .flag("-pthread")
        .extra_warnings(true);
    if let Ok(sanitizers) = env::var("VT_BUILD_SANITIZE") {
        add_sanitizers(&mut build, &sanitizers);
    }
    build.compile("vllm_vt");
}

/// For the tests of this repository: `VT_BUILD_SANITIZE=address` instruments the C objects with gcc and links its runtime. rustc links
/// without default libraries, so the runtime is named; it precedes libc that way, as it must.
fn add_sanitizers(build: &mut cc::Build, sanitizers: &str) {
    for sanitizer in sanitizers.split(',').filter(|name| !name.is_empty()) {
        let runtime = match sanitizer {
            "address" => "asan",
            "undefined" => "ubsan",
            _ => panic!("VT_BUILD_SANITIZE={sanitizers}: expected address or undefined"),
        };
        build.flag(format!("-fsanitize={sanitizer}")).flag("-fno-omit-frame-pointer");
        println!("cargo::rustc-link-lib={runtime}");
    }
}

#[cfg(feature = "bindgen")]
mod bindings {
    //! Generates `bindings.rs`. `scripts/bindings` copies the result to `src/bindings.rs`.

    use std::path::Path;

    use bindgen::callbacks::{IntKind, ParseCallbacks};

    const HEADING: &str = "// Generated from c/include/vllm_vt/vt.h by scripts/bindings. Do not edit.\n";

    /// bindgen can't evaluate macros that expand to other macros of `stdint.h`. Their values travel as constants, whose names lose one
    /// underscore again.
    const HEADER: &str = "
        #include <vllm_vt/vt.h>
        static const uint64_t VT__WAIT_FOREVER = VT_WAIT_FOREVER;
        static const uint64_t VT__COMM_DEFAULT_TIMEOUT_NS = VT_COMM_DEFAULT_TIMEOUT_NS;
    ";

    /// The type of each constant of an anonymous enum, by the beginning of its name: the longest one that fits counts.
    const CONSTANT_TYPES: &[(&str, &str)] = &[
        ("VT_OK", "vt_status"),
        ("VT_NOT_READY", "vt_status"),
        ("VT_ERR_", "vt_status"),
        ("VT_DOMAIN_", "vt_error_domain"),
        ("VT_LOG_", "vt_log_level"),
        ("VT_TRACE_", "vt_trace_kind"),
        ("VT_DTYPE_", "vt_dtype"),
        ("VT_DEVICE_", "vt_device_type"),
        ("VT_HANDLE_", "vt_handle_kind"),
        ("VT_REDUCE_", "vt_reduce_op"),
        ("VT_COMM_OP_", "vt_comm_op"),
        ("VT_COMM_STATE_", "vt_comm_state"),
        ("VT_COMM_GUARANTEE_", "u32"),
        ("VT_COMM_SPLIT_", "i32"),
        ("VT_MEMORY_", "i32"),
        ("VT_ALLOC_", "u32"),
        ("VT_CAP_", "u32"),
        ("VT_QUEUE_", "u32"),
        ("VT_EVENT_", "u32"),
        ("VT_WAIT_MODE_", "vt_wait_mode"),
        ("VT_OP_", "u32"),
        ("VT_VALIDATE_", "vt_validate_kind"),
        ("VT_SEVERITY_", "vt_validate_severity"),
        ("VT_TOUCH_", "u32"),
    ];

    pub fn write(include: &Path, out: &Path) {
        let generated = bindgen::Builder::default()
            .header_contents("bindings.h", HEADER)
            .clang_args(["-std=c11".to_string(), format!("-I{}", include.display())])
            .allowlist_item("vt_.*|VT_.*")
            .blocklist_item("VT_API|VT_PRINTF_LIKE")
            .default_enum_style(bindgen::EnumVariation::Consts)
            .translate_enum_integer_types(true)
            .prepend_enum_name(false)
            .rust_edition(bindgen::RustEdition::Edition2024)
            .merge_extern_blocks(true)
            .use_core()
            .derive_default(true)
            .generate_comments(false)
            .disable_header_comment()
            .rustfmt_configuration_file(Some(include.join("../../rustfmt.toml")))
            .parse_callbacks(Box::new(Names))
            .generate()
            .unwrap_or_else(|error| panic!("bindgen (it needs libclang): {error}"));
        let text = format!("{HEADING}\n{}", with_constant_types(&generated.to_string()));
        std::fs::write(out, text).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
    }

    #[derive(Debug)]
    struct Names;

    impl ParseCallbacks for Names {
        fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
            match name {
                "VT_VERSION" | "VT_VERSION_MAJOR" | "VT_VERSION_MINOR" | "VT_VERSION_PATCH" => Some(IntKind::I32),
                "VT_OP_NATIVE_PRIORITY" | "VT_OP_REFERENCE_PRIORITY" | "VT_COMM_MAX_WORLD" | "VT_MAX_DEVICES_PER_TYPE" => {
                    Some(IntKind::I32)
                }
                "VT_HOST_CALL_PAYLOAD" | "VT_ERROR_MESSAGE_MAX" | "VT_OP_REFERENCE_ARGS_MAX" | "VT_OP_STATS_REASONS" => {
                    Some(IntKind::Custom { name: "usize", is_signed: false })
                }
                _ => None,
            }
        }

        fn item_name(&self, item: bindgen::callbacks::ItemInfo) -> Option<String> {
            item.name.strip_prefix("VT__").map(|rest| format!("VT_{rest}"))
        }
    }

    /// Gives constants of anonymous enums the type that the headers use them with, in place of bindgen's numbered aliases.
    fn with_constant_types(text: &str) -> String {
        text.lines().filter(|line| !line.starts_with("pub type _bindgen_ty_")).map(with_constant_type).collect()
    }

    fn with_constant_type(line: &str) -> String {
        let Some((name, value)) = enum_constant(line) else { return format!("{line}\n") };
        let kind = CONSTANT_TYPES
            .iter()
            .filter(|(prefix, _)| name.starts_with(prefix))
            .max_by_key(|(prefix, _)| prefix.len())
            .unwrap_or_else(|| panic!("{name} belongs to no group of CONSTANT_TYPES: add its beginning there"))
            .1;
        format!("pub const {name}: {kind} = {value};\n")
    }

    /// Splits `pub const NAME: _bindgen_ty_N = VALUE;`.
    fn enum_constant(line: &str) -> Option<(&str, &str)> {
        let (name, rest) = line.strip_prefix("pub const ")?.split_once(": _bindgen_ty_")?;
        let (_, value) = rest.strip_suffix(';')?.split_once(" = ")?;
        Some((name, value))
    }
}
