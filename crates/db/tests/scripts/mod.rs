//! Makes a test of every golden script of an area.

/// `scripts!("area", Runner::new(), first_script, second_script)`: a test for each script in `tests/golden/area`, and one
/// that no script there is forgotten. To write the expected output anew, set `UPDATE_GOLDENFILES=1`, and read the diff.
macro_rules! scripts {
    ($area:literal, $runner:expr, $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                goldenscript::run(&mut $runner, concat!("tests/golden/", $area, "/", stringify!($name))).unwrap();
            }
        )*

        #[test]
        fn every_script_is_run() {
            let folder = std::fs::read_dir(concat!("tests/golden/", $area)).unwrap();
            let mut scripts: Vec<_> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            scripts.sort();
            let mut run = vec![$(stringify!($name)),*];
            run.sort_unstable();
            assert_eq!(scripts, run);
        }
    };
}
