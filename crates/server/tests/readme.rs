//! The README shows the example as it is.

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("../../../README.md");
    let example = include_str!("../examples/bank.rs");
    let (_, code) = example.split_once('\n').expect("a first line that says how to run it");
    assert!(readme.contains(code.trim()), "copy crates/server/examples/bank.rs into README.md");
}
