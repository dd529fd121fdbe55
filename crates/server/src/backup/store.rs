//! Objects by name: in a directory, or in a bucket of an S3-compatible service.
//!
//! The library behind it does everything asynchronously. Its runtime is one thread's own, made with the store and used in here
//! alone: whoever uses a store just waits.

use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

/// The folder of the objects.
const OBJECTS: &str = "objects";

/// Most objects that are sent at the same time.
pub const SENT_TOGETHER_MAX: usize = 4;

/// Why something could not be done with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The place has no sense.
    #[error("{0}")]
    Location(String),
    /// There is no such object.
    #[error("the object `{name}` of {store} is missing: put it back, or use another backup")]
    Missing {
        /// The object.
        name: String,
        /// Where it should be.
        store: String,
    },
    /// An object is not as it was written.
    #[error(
        "the object `{name}` of {store} is damaged: {problem}; put back a copy of it, or use another backup"
    )]
    Damaged {
        /// The object.
        name: String,
        /// Where it is.
        store: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The store failed.
    #[error("cannot {operation} `{name}` of {store}: {source}")]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// The object or the folder.
        name: String,
        /// Where it is.
        store: String,
        /// In the words of the store.
        source: Box<object_store::Error>,
    },
}

/// The contents of an object: its name follows from them, so equal contents are stored once, and damage is noticed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

impl Object {
    /// The object with these contents.
    pub fn of(contents: &[u8]) -> Object {
        Object { sha256: sha256(contents), bytes: contents.len() as u64 }
    }

    /// Its name in a store.
    pub fn name(&self) -> String {
        format!("{OBJECTS}/{}/{}", self.sha256.get(..2).unwrap_or_default(), self.sha256)
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256(contents: &[u8]) -> String {
    digest(&SHA256, contents).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How a store is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreOptions {
    /// Whether it is allowed to speak to a service without encryption.
    pub allow_http: bool,
}

/// What was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Objects that were sent.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were there already.
    pub kept: u64,
}

/// See the [module](self).
pub struct Store {
    name: String,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Store {
    /// The store at a place: a directory, `file:///directory`, or `s3://bucket/prefix`. A directory is made if it is to be
    /// written to.
    ///
    /// # Errors
    /// [`StoreError::Location`] says what is wrong with the place.
    pub fn open(location: &str, options: StoreOptions, is_written: bool) -> Result<Store, StoreError> {
        match location.split_once("://") {
            None => Store::in_directory(location, location, is_written),
            Some(("file", path)) if path.starts_with('/') => Store::in_directory(location, path, is_written),
            Some(("s3", place)) => Store::in_bucket(location, place, options),
            Some(_) => Err(StoreError::Location(format!(
                "{location:?} is no place for backups: name a directory, file:///directory or s3://bucket/prefix"
            ))),
        }
    }

    /// A store over another one of the library.
    ///
    /// # Errors
    /// [`StoreError::Location`], if the operating system gives no runtime.
    pub fn over(name: &str, store: Arc<dyn ObjectStore>, prefix: Path) -> Result<Store, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| StoreError::Location(format!("cannot reach {name}: {error}")))?;
        Ok(Store { name: name.to_owned(), store, prefix, runtime })
    }

    fn in_directory(location: &str, path: &str, is_written: bool) -> Result<Store, StoreError> {
        let wrong = |problem: String| {
            StoreError::Location(format!("cannot use {path} as a place of backups: {problem}"))
        };
        if is_written {
            crate::files::create_directory(FilePath::new(path)).map_err(|error| wrong(error.to_string()))?;
        }
        if !FilePath::new(path).is_dir() {
            return Err(wrong("there is no such directory: check the place".to_owned()));
        }
        let store = LocalFileSystem::new_with_prefix(path).map_err(|error| wrong(error.to_string()))?;
        // A backup must be there after a crash of this machine, too.
        Store::over(location, Arc::new(store.with_fsync(true)), Path::default())
    }

    /// What is not in the place comes from the environment, as other programs for S3 have it: `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` and so on.
    fn in_bucket(location: &str, place: &str, options: StoreOptions) -> Result<Store, StoreError> {
        let wrong = |problem: String| {
            StoreError::Location(format!("cannot use {location} as a place of backups: {problem}"))
        };
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.is_empty() {
            return Err(wrong("name the bucket, as in s3://bucket/prefix".to_owned()));
        }
        // The first use decides for the process. If there was one already, it is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let builder = builder.with_allow_http(options.allow_http);
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        let plain = endpoint.filter(|endpoint| endpoint.starts_with("http://") && !options.allow_http);
        if let Some(endpoint) = plain {
            return Err(wrong(format!(
                "{endpoint} is not encrypted: use https, or allow it with --allow-http"
            )));
        }
        check_keys(&builder).map_err(&wrong)?;
        let store = builder.build().map_err(|error| wrong(error.to_string()))?;
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| wrong(error.to_string()))?;
        Store::over(location, Arc::new(store), prefix)
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, operation: &'static str, name: &str, source: object_store::Error) -> StoreError {
        let (name, store) = (name.to_owned(), self.name.clone());
        match source {
            object_store::Error::NotFound { .. } => StoreError::Missing { name, store },
            source => StoreError::Failed { operation, name, store, source: Box::new(source) },
        }
    }

    /// An error of an object that can be read and has no sense.
    pub fn damaged(&self, name: &str, problem: impl fmt::Display) -> StoreError {
        StoreError::Damaged { name: name.to_owned(), store: self.name.clone(), problem: problem.to_string() }
    }

    /// Writes something under a name, all or nothing, in place of what is there.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn put(&self, name: &str, contents: Bytes) -> Result<(), StoreError> {
        let put = async { self.store.put(&self.path(name), PutPayload::from(contents)).await };
        self.runtime.block_on(put).map(drop).map_err(|error| self.failed("write", name, error))
    }

    /// Reads what has a name.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Failed`].
    pub fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let get = async { self.store.get(&self.path(name)).await?.bytes().await };
        self.runtime.block_on(get).map_err(|error| self.failed("read", name, error))
    }

    /// The names of all in a folder, without the folder, ascending.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let path = self.path(folder);
        let list = async {
            let listed = self.store.list(Some(&path)).map_ok(|object| object.location);
            listed.try_collect::<Vec<Path>>().await
        };
        let found = self.runtime.block_on(list).map_err(|error| self.failed("list", folder, error))?;
        let name = |location: &Path| {
            let parts: Vec<String> =
                location.prefix_match(&path)?.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        let mut names: Vec<String> = found.iter().filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Whether an object is there, as far as its length tells.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn has(&self, object: &Object) -> Result<bool, StoreError> {
        let name = object.name();
        let head = async { self.store.head(&self.path(&name)).await };
        match self.runtime.block_on(head) {
            Ok(found) => Ok(found.size == object.bytes),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("look for", &name, error)),
        }
    }

    /// Sends what is not there yet, a few objects at the same time, and names all.
    ///
    /// # Errors
    /// [`StoreError::Failed`]. Some may be there then.
    pub fn send(&self, contents: Vec<Bytes>, sent: &mut Sent) -> Result<Vec<Object>, StoreError> {
        let objects: Vec<Object> = contents.iter().map(|contents| Object::of(contents)).collect();
        let mut missing = Vec::new();
        for (object, contents) in objects.iter().zip(contents) {
            match self.has(object)? {
                true => sent.kept += 1,
                false => missing.push((object.name(), contents)),
            }
        }
        for together in missing.chunks(SENT_TOGETHER_MAX) {
            let puts = together.iter().map(|(name, contents)| async move {
                let put = self.store.put(&self.path(name), PutPayload::from(contents.clone())).await;
                put.map(drop).map_err(|error| self.failed("write", name, error))
            });
            self.runtime.block_on(try_join_all(puts))?;
            sent.objects += together.len() as u64;
            sent.bytes += together.iter().map(|(_, contents)| contents.len() as u64).sum::<u64>();
        }
        Ok(objects)
    }

    /// Reads an object and verifies it.
    ///
    /// # Errors
    /// [`StoreError`] names it.
    pub fn fetch(&self, object: &Object) -> Result<Bytes, StoreError> {
        let name = object.name();
        let contents = self.get(&name)?;
        let found = Object::of(&contents);
        if found != *object {
            let problem = format!("it has {} bytes with SHA-256 {}", found.bytes, found.sha256);
            return Err(self.damaged(&name, format!("{problem}, and {} bytes were written", object.bytes)));
        }
        Ok(contents)
    }
}

/// Keys, or where they are, must be named: else the library would ask an address in the machine's network for those of the
/// machine.
fn check_keys(builder: &AmazonS3Builder) -> Result<(), String> {
    let has = |key: AmazonS3ConfigKey| builder.get_config_value(&key).is_some_and(|value| !value.is_empty());
    let elsewhere = [
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
        AmazonS3ConfigKey::MetadataEndpoint,
    ];
    let unsigned = builder.get_config_value(&AmazonS3ConfigKey::SkipSignature);
    if unsigned.is_some_and(|unsigned| unsigned == "true") || elsewhere.into_iter().any(has) {
        return Ok(());
    }
    let missing = match [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::SecretAccessKey].map(has) {
        [true, true] => return Ok(()),
        [true, false] => "AWS_SECRET_ACCESS_KEY is not set: set it",
        [false, true] => "AWS_ACCESS_KEY_ID is not set: set it",
        [false, false] => {
            "there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION or AWS_ENDPOINT_URL; for those \
             of the machine's role set AWS_METADATA_ENDPOINT"
        }
    };
    Err(missing.to_owned())
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn store() -> Store {
        Store::over("memory", Arc::new(InMemory::new()), Path::from("some/where")).unwrap()
    }

    #[test]
    fn equal_contents_are_sent_once() {
        let (store, mut sent) = (store(), Sent::default());
        let first =
            store.send(vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")], &mut sent).unwrap();
        let second = store.send(vec![Bytes::from_static(b"two")], &mut sent).unwrap();
        assert_eq!(sent, Sent { objects: 2, bytes: 6, kept: 1 });
        assert_eq!(first[1], second[0]);
        assert_eq!(store.fetch(&first[0]).unwrap(), "one");
        assert_eq!(store.list(OBJECTS).unwrap().len(), 2);
    }

    #[test]
    fn damage_and_loss_are_named() {
        let (store, mut sent) = (store(), Sent::default());
        let object = store.send(vec![Bytes::from_static(b"one")], &mut sent).unwrap().remove(0);
        store.put(&object.name(), Bytes::from_static(b"two")).unwrap();
        let error = store.fetch(&object).unwrap_err().to_string();
        assert!(error.contains(&object.name()) && error.contains("is damaged"), "{error}");
        let missing = Object::of(b"three");
        let error = store.fetch(&missing).unwrap_err().to_string();
        assert!(error.contains(&missing.name()) && error.contains("is missing"), "{error}");
    }

    #[test]
    fn places_are_checked() {
        let refused =
            |place: &str| Store::open(place, StoreOptions::default(), false).err().unwrap().to_string();
        assert!(refused("ftp://somewhere").contains("is no place for backups"));
        assert!(refused("s3:///prefix").contains("name the bucket"));
        assert!(refused("/no/such/directory").contains("cannot use /no/such/directory"));
    }
}
