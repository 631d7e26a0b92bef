//! Runs the C conformance suite (`c/tests`), one result line per case and row.
//!
//! The suite is compiled here, with the crate `cc` and the archive that the build script made, so that a user's build never compiles
//! tests. Each run of a case is a process of its own: a crash or a hang is one failed line. Cases that a row can't run are listed as
//! ignored, with the reason.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::SystemTime;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// What the program exits with when a case turned out to be impossible here.
const SKIPPED: i32 = 2;

/// A backend in a shared library, an engine in one, and a program that loads the engine: all beside the program.
const PLUGIN: &str = "vt_plugin_deferring.so";
const SESSION: &str = "vt_session.so";
const LOADER: &str = "vt_loader";

fn main() {
    let mut arguments = Arguments::from_args();
    // Cases have threads of their own.
    arguments.test_threads.get_or_insert(2);
    let program = Arc::new(up_to_date_program());
    libtest_mimic::run(&arguments, trials(&program)).exit();
}

fn trials(program: &Arc<PathBuf>) -> Vec<Trial> {
    let list = run(program, &["--list"]);
    assert!(list.status.success(), "the suite can't list its cases: {}", text(&list));
    let list = String::from_utf8(list.stdout).expect("names are UTF-8");
    let mut trials: Vec<Trial> = list.lines().enumerate().map(|(number, line)| trial(program, number, line)).collect();
    trials.extend(["cpu-async", "toy"].map(|row| validated_trial(program, row)));
    let minimum = Arc::clone(program);
    trials.push(Trial::test("kept_minimum_of_cases_per_row", move || {
        let output = run(&minimum, &["--minimum"]);
        if output.status.success() { Ok(()) } else { Err(Failed::from(text(&output))) }
    }));
    trials
}

/// One line of the list: the name, and behind a tab the reason why the case is skipped.
fn trial(program: &Arc<PathBuf>, number: usize, line: &str) -> Trial {
    let (name, reason) = line.split_once('\t').unwrap_or((line, ""));
    let program = Arc::clone(program);
    let run_it = move || {
        let output = run(&program, &["--run", &number.to_string()]);
        match output.status.code() {
            Some(0) => Ok(Completion::Completed),
            Some(SKIPPED) => Ok(Completion::ignored_with(text(&output))),
            _ => Err(Failed::from(format!("{}: {}", output.status, text(&output)))),
        }
    };
    Trial::ignorable_test(name, run_it).with_ignored_flag(!reason.is_empty()).with_kind(reason)
}

/// A row once more under the validation layer: a report that a case doesn't declare fails it.
fn validated_trial(program: &Arc<PathBuf>, row: &'static str) -> Trial {
    let program = Arc::clone(program);
    Trial::test(format!("validated/{row}"), move || {
        let mut command = Command::new(program.as_path());
        let output = command.args(["--row", row]).env("VT_VALIDATE", "1").output().expect("the suite can be started");
        if output.status.success() { Ok(()) } else { Err(Failed::from(text(&output))) }
    })
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Compiles the suite unless the program is newer than everything it is made of. Two runs at once wait for each other.
fn up_to_date_program() -> PathBuf {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    fs::create_dir_all(&work).unwrap_or_else(|error| panic!("{}: {error}", work.display()));
    let lock = File::create(work.join("lock")).expect("a lock file");
    lock.lock().expect("the lock of the build");
    let program = work.join("vt_conformance");
    let sources = sources();
    let others = [plugin_sources(), session_sources(), loader_sources(), headers(), vec![archive()]].concat();
    let newest = sources.iter().chain(&others).map(|path| changed(path)).max();
    let complete = [PLUGIN, SESSION, LOADER].iter().all(|name| work.join(name).exists()) && program.exists();
    if !complete || newest > Some(changed(&program)) || sanitizers().is_some() {
        // The plug-in links nothing of ours: the program that loads it has the runtime, and lets it see the names.
        build_library(&work, PLUGIN, &plugin_sources(), None);
        build_library(&work, SESSION, &session_sources(), Some(archive()));
        build(&loader_sources(), &folder(&work, LOADER), None, &work.join(LOADER));
        build(&sources, &work, Some(archive()), &program);
    }
    program
}

fn c_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c")
}

/// The runtime as the build script made it.
fn archive() -> PathBuf {
    Path::new(env!("VLLM_VT_LIB_DIR")).join("libvllm_vt.a")
}

fn sources() -> Vec<PathBuf> {
    files(&c_folder().join("tests"), "c")
}

/// Of the backend in a shared library, which the row "plugin" runs on.
fn plugin_sources() -> Vec<PathBuf> {
    ["tests/plugin/deferring.c", "tests/toy_backend.c"].map(|path| c_folder().join(path)).into()
}

fn session_sources() -> Vec<PathBuf> {
    ["tests/process/session.c", "tests/toy_backend.c"].map(|path| c_folder().join(path)).into()
}

fn loader_sources() -> Vec<PathBuf> {
    vec![c_folder().join("tests/process/loader.c")]
}

fn headers() -> Vec<PathBuf> {
    ["tests", "tests/abi", "tests/process", "include/vllm_vt"].iter().flat_map(|path| files(&c_folder().join(path), "h")).collect()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn changed(path: &Path) -> SystemTime {
    let time = fs::metadata(path).and_then(|data| data.modified());
    time.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The archive is instrumented where this is set (see build.rs), so the program must be linked alike.
fn sanitizers() -> Option<String> {
    env::var("VT_BUILD_SANITIZE").ok().filter(|names| !names.is_empty())
}

fn compiler(work: &Path, sources: &[PathBuf]) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .target(env!("VLLM_VT_TARGET"))
        .host(env!("VLLM_VT_TARGET"))
        .opt_level(1)
        .debug(true)
        .out_dir(work)
        .cargo_metadata(false)
        .std("c11")
        .define("_GNU_SOURCE", None)
        .flag("-pthread")
        .extra_warnings(true)
        .include(c_folder().join("include"))
        .files(sources);
    if let Some(names) = sanitizers() {
        build.flag(format!("-fsanitize={names}"));
    }
    build
}

fn link(build: &cc::Build, arguments: impl IntoIterator<Item = PathBuf>, flags: &[&str], out: &Path) {
    let mut link = build.get_compiler().to_command();
    let output = link.args(arguments).args(flags).arg("-o").arg(out).output().expect("the C compiler can be started");
    assert!(output.status.success(), "linking {} failed: {}", out.display(), text(&output));
}

/// Objects of one name must not meet.
fn folder(work: &Path, name: &str) -> PathBuf {
    let folder = work.join(name).with_extension("objects");
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    folder
}

/// A library that holds the runtime stays loaded: see the README.
fn build_library(work: &Path, name: &str, sources: &[PathBuf], archive: Option<PathBuf>) {
    let mut build = compiler(&folder(work, name), sources);
    build.pic(true).flag("-fvisibility=hidden");
    let objects = build.compile_intermediates();
    let flags = ["-shared", "-pthread", "-lm", "-Wl,-z,nodelete"];
    link(&build, objects.into_iter().chain(archive), &flags, &work.join(name));
}

fn build(sources: &[PathBuf], work: &Path, archive: Option<PathBuf>, program: &Path) {
    let build = compiler(work, sources);
    let objects = build.compile_intermediates();
    link(&build, objects.into_iter().chain(archive), &["-rdynamic", "-pthread", "-lm", "-ldl"], program);
}
