//! The folder of an experiment: its figures, tables and reports.

use std::path::{Path, PathBuf};

/// See the [module](self).
#[derive(Debug)]
pub struct Output(PathBuf);

impl Output {
    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn create(folder: &Path) -> Result<Output, String> {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Output(folder.to_owned()))
    }

    /// Writes a file, over an older one.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(name);
        std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}
