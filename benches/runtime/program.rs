//! The C half, `loops.c`: compiled here, so that nobody else's build compiles benchmarks, and asked over a pipe.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Sample {
    pub ns: f64,
    pub right: bool,
}

/// A case as `loops.c` lists it.
#[derive(Clone)]
pub struct Listed {
    pub name: String,
    pub operations: u32,
}

/// A running program. It ends when its input does.
pub struct Program {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub cases: Vec<Listed>,
}

fn c_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c")
}

fn work_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime")
}

/// As build.rs compiles the library.
fn compiler(out: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .target(env!("VLLM_VT_TARGET"))
        .host(env!("VLLM_VT_TARGET"))
        .opt_level(3)
        .out_dir(out)
        .cargo_metadata(false)
        .std("c11")
        .define("_GNU_SOURCE", None)
        .flag("-ffp-contract=off")
        .flag("-fvisibility=hidden")
        .flag("-pthread")
        .extra_warnings(true)
        .include(c_folder().join("include"));
    build
}

fn link(build: &cc::Build, objects: Vec<PathBuf>, out: &Path) {
    let mut command = build.get_compiler().to_command();
    let status = command.args(objects).args(["-pthread", "-lm", "-o"]).arg(out).status().expect("the C compiler can be started");
    assert!(status.success(), "{} could not be linked", out.display());
}

fn loops(build: &mut cc::Build) -> Vec<PathBuf> {
    build.file(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/runtime/loops.c")).compile_intermediates()
}

fn prepare(name: &str) -> (PathBuf, PathBuf) {
    let folder = work_folder().join(name);
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let program = folder.join("loops");
    (folder, program)
}

impl Program {
    /// Over the archive that the crate itself is linked with.
    pub fn shipped(mask: u64, workers: u64) -> Program {
        let (folder, program) = prepare("shipped");
        let mut build = compiler(&folder);
        let mut objects = loops(&mut build);
        objects.push(Path::new(env!("VLLM_VT_LIB_DIR")).join("libvllm_vt.a"));
        link(&build, objects, &program);
        Program::start(&program, mask, workers)
    }

    /// Over the same sources, compiled without the looks at the hooks.
    pub fn without_hooks(mask: u64, workers: u64) -> Program {
        let (folder, program) = prepare("without_hooks");
        let mut build = compiler(&folder);
        build.include(c_folder().join("src")).define("VT__WITHOUT_HOOKS", None);
        let list = fs::read_to_string(c_folder().join("sources.txt")).expect("the list of sources");
        let names = list.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        build.files(names.filter(|name| !name.is_empty()).map(|name| c_folder().join(name)));
        let objects = loops(&mut build);
        link(&build, objects, &program);
        Program::start(&program, mask, workers)
    }

    fn start(program: &Path, mask: u64, workers: u64) -> Program {
        let mut child = Command::new(program)
            .args([mask.to_string(), workers.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut program = Program { _child: child, input, output: BufReader::new(output), cases: Vec::new() };
        loop {
            let line = program.line();
            let Some((name, operations)) = line.split_once(' ') else { break };
            let operations = operations.parse().expect("a number of operations");
            program.cases.push(Listed { name: name.into(), operations });
        }
        program
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).expect("the C program can be read");
        assert!(length > 0, "the C program ended: see its message above");
        line.trim_end().into()
    }

    pub fn sample(&mut self, name: &str) -> Sample {
        writeln!(self.input, "{name}").expect("the C program can be written to");
        let line = self.line();
        let (ns, word) = line.split_once(' ').unwrap_or_else(|| panic!("{name}: the C program answered '{line}'"));
        Sample { ns: ns.parse().expect("a time"), right: word == "ok" }
    }
}
