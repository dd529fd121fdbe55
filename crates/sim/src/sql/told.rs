//! What a session tells a client, read from PostgreSQL's messages.

/// What a client was told of one message of its own.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Told {
    /// The rows of all results, one after the other; `None` is null.
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// What the last statement was that was completed, such as `COMMIT`.
    pub(crate) tag: String,
    /// The first error: its SQLSTATE, and what it says.
    pub(crate) error: Option<(String, String)>,
}

impl Told {
    /// Reads messages of the server.
    ///
    /// # Panics
    /// When they are none: they were written in the same process.
    pub(crate) fn read(mut bytes: &[u8]) -> Told {
        let mut told = Told::default();
        while let [kind, rest @ ..] = bytes {
            let length = rest.first_chunk().map_or(0, |length| u32::from_be_bytes(*length)) as usize;
            assert!((4..=rest.len()).contains(&length), "a message of {length} bytes in {}", rest.len());
            let (body, after) = (&rest[4..length], &rest[length..]);
            bytes = after;
            match kind {
                b'D' => told.rows.push(values(body)),
                b'C' => told.tag = text(body).0,
                b'E' if told.error.is_none() => told.error = Some(error(body)),
                _ => {}
            }
        }
        told
    }

    /// The SQLSTATE of the error, if there was one.
    pub(crate) fn state(&self) -> Option<&str> {
        self.error.as_ref().map(|(state, _)| state.as_str())
    }

    /// The only value of the only row, if it is such a one.
    pub(crate) fn value(&self) -> Option<&str> {
        match self.rows.as_slice() {
            [row] => row.first()?.as_deref(),
            _ => None,
        }
    }
}

/// The text before the first zero, and what comes after that.
fn text(body: &[u8]) -> (String, &[u8]) {
    let end = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
    (String::from_utf8_lossy(&body[..end]).into_owned(), body.get(end + 1..).unwrap_or_default())
}

fn values(body: &[u8]) -> Vec<Option<String>> {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut values = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push(None);
            rest = after;
            continue;
        };
        let (value, after) = after.split_at(length.min(after.len()));
        values.push(Some(String::from_utf8_lossy(value).into_owned()));
        rest = after;
    }
    values
}

fn error(body: &[u8]) -> (String, String) {
    let (mut state, mut message, mut rest) = (String::new(), String::new(), body);
    while let [field, after @ ..] = rest {
        let (value, next) = text(after);
        match field {
            b'C' => state = value,
            b'M' => message = value,
            _ => {}
        }
        rest = next;
    }
    (state, message)
}
