// build.rs: asks pkg-config where libbaton is; without an answer the linker's own folders count.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let answer = Command::new("pkg-config").args(["--libs-only-L", "baton"]).output();
    if let Ok(answer) = answer {
        for word in String::from_utf8_lossy(&answer.stdout).split_whitespace() {
            if let Some(folder) = word.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={folder}");
            }
        }
    }
    println!("cargo:rustc-link-lib=baton");
}
