//! A small D-Bus client for the private socket of systemd.
//!
//! There is no bus in between, and one call follows the other. Sources: the D-Bus specification,
//! "Message Protocol" and "Authentication Protocol". The encoding itself is `zvariant`'s.
//!
//! Other ways were tried with systemd 252:
//! - `zbus` 5.19, `Builder::unix_stream(…).p2p()`: connects in 2 ms, then panics at the first message.
//!   systemd names itself `org.freedesktop.systemd1` as the sender, and `zbus` accepts connection names
//!   only.
//! - `busctl` greets a bus, and there is none: systemd refuses the call.
//! - `systemd-run --scope` starts a program, but the launcher must be held before it is in its scope.
//!   It takes 9 to 31 ms, and a whole launch may take 10 ms.
//! - The system's bus is absent in containers and minimal systems.

use super::failure::Failure;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use zvariant::serialized::{Context, Data};
use zvariant::{DynamicType, Endian, OwnedValue, Signature, Type, Value, to_bytes};

const DESTINATION: &str = "org.freedesktop.systemd1";
const PATH: &str = "/org/freedesktop/systemd1";

/// Far more than any answer that is expected here.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
const MAX_LINE_BYTES: u64 = 512;
/// Fixed part of a message.
const FIXED_BYTES: usize = 16;

const CALL: u8 = 1;
const REPLY: u8 = 2;
const SIGNAL: u8 = 4;

const FIELD_PATH: u8 = 1;
const FIELD_INTERFACE: u8 = 2;
const FIELD_MEMBER: u8 = 3;
const FIELD_ERROR_NAME: u8 = 4;
const FIELD_REPLY_SERIAL: u8 = 5;
const FIELD_DESTINATION: u8 = 6;
const FIELD_SIGNATURE: u8 = 8;

/// Endianness, kind, flags, version, length of the body, serial number, fields.
type Header<V> = (u8, u8, u8, u8, u32, u32, Vec<(u8, V)>);

/// The connection.
#[derive(Debug)]
pub(super) struct Wire<S = UnixStream> {
    stream: BufReader<S>,
    serial: u32,
}

/// A message that came.
#[derive(Debug)]
pub(super) struct Message {
    kind: u8,
    fields: Vec<(u8, OwnedValue)>,
    endian: Endian,
    body: Vec<u8>,
}

impl<S: AsyncReadExt + AsyncWriteExt + Unpin> Wire<S> {
    /// Authenticates as this user. The kernel proves the user to systemd.
    pub(super) async fn authenticate(stream: S) -> Result<Self, Failure> {
        let mut stream = BufReader::new(stream);
        let user = rustix::process::geteuid().as_raw().to_string();
        // In one write: a call that systemd reads together with `BEGIN` would wait for more bytes.
        let greeting = format!("\0AUTH EXTERNAL {}\r\nBEGIN\r\n", hex::encode(user));
        stream.write_all(greeting.as_bytes()).await?;
        let mut line = Vec::new();
        (&mut stream).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
        if !line.starts_with(b"OK ") {
            return Err(Failure::Greeting);
        }
        Ok(Self { stream, serial: 0 })
    }

    /// Calls a method and waits for its reply.
    ///
    /// Other messages that arrive meanwhile go to `on_message`.
    pub(super) async fn call<B>(
        &mut self,
        interface: &str,
        method: &str,
        body: &B,
        mut on_message: impl FnMut(&Message),
    ) -> Result<Message, Failure>
    where
        B: serde::Serialize + DynamicType,
    {
        self.serial = self.serial.wrapping_add(1).max(1);
        let call = encode(self.serial, interface, method, body)?;
        self.stream.write_all(&call).await?;
        loop {
            let message = self.receive().await?;
            if message.number(FIELD_REPLY_SERIAL) != Some(self.serial) {
                on_message(&message);
                continue;
            }
            return match message.kind {
                REPLY => Ok(message),
                _ => Err(Failure::Refused {
                    name: message.text(FIELD_ERROR_NAME).unwrap_or_default().to_owned(),
                    text: message.body().unwrap_or_default(),
                }),
            };
        }
    }

    /// The next message.
    pub(super) async fn receive(&mut self) -> Result<Message, Failure> {
        let mut bytes = vec![0; FIXED_BYTES];
        self.stream.read_exact(&mut bytes).await?;
        let endian = match bytes.first() {
            Some(b'l') => Endian::Little,
            Some(b'B') => Endian::Big,
            Some(_) | None => return Err(Failure::Garbled),
        };
        let number = |at: usize| -> Option<usize> {
            let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
            let number = match endian {
                Endian::Little => u32::from_le_bytes(four),
                Endian::Big => u32::from_be_bytes(four),
            };
            usize::try_from(number).ok().filter(|length| *length <= MAX_MESSAGE_BYTES)
        };
        let body = number(4).ok_or(Failure::Garbled)?;
        let header_bytes = FIXED_BYTES + number(12).ok_or(Failure::Garbled)?.next_multiple_of(8);
        bytes.resize(header_bytes, 0);
        let rest = bytes.get_mut(FIXED_BYTES..).ok_or(Failure::Garbled)?;
        self.stream.read_exact(rest).await?;
        let mut content = vec![0; body];
        self.stream.read_exact(&mut content).await?;
        let data = Data::new(bytes, Context::new_dbus(endian, 0));
        let (header, _) = data.deserialize::<Header<OwnedValue>>()?;
        let (_, kind, _, _, _, _, fields) = header;
        Ok(Message { kind, fields, endian, body: content })
    }
}

impl Message {
    /// The body, if the message is the signal with this name.
    pub(super) fn signal<T>(&self, interface: &str, member: &str) -> Option<T>
    where
        T: serde::de::DeserializeOwned + Type,
    {
        let is_it = self.kind == SIGNAL
            && self.text(FIELD_INTERFACE) == Some(interface)
            && self.text(FIELD_MEMBER) == Some(member);
        if is_it { self.body().ok() } else { None }
    }

    /// The body.
    pub(super) fn body<T: serde::de::DeserializeOwned + Type>(&self) -> Result<T, Failure> {
        let data = Data::new(self.body.as_slice(), Context::new_dbus(self.endian, 0));
        Ok(data.deserialize()?.0)
    }

    fn field(&self, code: u8) -> Option<&Value<'static>> {
        self.fields.iter().find(|(of, _)| *of == code).map(|(_, value)| &**value)
    }

    fn text(&self, code: u8) -> Option<&str> {
        match self.field(code)? {
            Value::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    fn number(&self, code: u8) -> Option<u32> {
        match self.field(code)? {
            Value::U32(number) => Some(*number),
            _ => None,
        }
    }
}

/// A field of the header: any value, or the signature of the body.
///
/// The body is several values in a row and no structure, so its signature has no brackets.
enum Field<'a> {
    Plain(Value<'a>),
    Signature(String),
}

impl Type for Field<'_> {
    const SIGNATURE: &'static Signature = &Signature::Variant;
}

impl serde::Serialize for Field<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::Signature(text) => {
                let mut variant = serializer.serialize_struct("Variant", 2)?;
                variant.serialize_field("signature", &Signature::Signature)?;
                variant.serialize_field("value", text)?;
                variant.end()
            }
        }
    }
}

fn encode<B>(serial: u32, interface: &str, method: &str, body: &B) -> Result<Vec<u8>, Failure>
where
    B: serde::Serialize + DynamicType,
{
    let context = Context::new_dbus(Endian::Little, 0);
    let signature = body.signature().to_string_no_parens();
    let body = to_bytes(context, body)?;
    let length = u32::try_from(body.len()).map_err(|_| Failure::Garbled)?;
    let path = zvariant::ObjectPath::try_from(PATH)?;
    let fields = vec![
        (FIELD_PATH, Field::Plain(Value::from(path))),
        (FIELD_INTERFACE, Field::Plain(Value::from(interface))),
        (FIELD_MEMBER, Field::Plain(Value::from(method))),
        (FIELD_DESTINATION, Field::Plain(Value::from(DESTINATION))),
        (FIELD_SIGNATURE, Field::Signature(signature)),
    ];
    let header: Header<Field<'_>> = (b'l', CALL, 0, 1, length, serial, fields);
    let mut bytes = to_bytes(context, &header)?.to_vec();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn read(bytes: &[u8]) -> Result<Message, Failure> {
        let stream = tokio::io::join(bytes, tokio::io::sink());
        Wire { stream: BufReader::new(stream), serial: 0 }.receive().await
    }

    #[tokio::test]
    async fn an_encoded_call_can_be_read_back() {
        let body = ("a.scope", "all", 9_i32);
        let bytes = encode(7, "a.b.C", "KillUnit", &body).unwrap();
        assert!(bytes.windows(5).any(|at| at == b"\x03ssi\0"), "the signature has no brackets");
        let message = read(&bytes).await.unwrap();
        assert_eq!((message.kind, message.text(FIELD_MEMBER)), (CALL, Some("KillUnit")));
        assert_eq!(message.text(FIELD_DESTINATION), Some(DESTINATION));
        assert_eq!(message.body::<(String, String, i32)>().unwrap().2, 9);
        assert!(message.signal::<(String, String, i32)>("a.b.C", "KillUnit").is_none());
        assert!(message.body::<(u32, u32, u32, u32, u64, u64)>().is_err(), "another body");
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200), little in any::<bool>()
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = if little { b'l' } else { b'B' };
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            if let Ok(message) = runtime.block_on(read(&bytes)) {
                let _ = message.body::<(u32, String)>();
            }
        }
    }
}
