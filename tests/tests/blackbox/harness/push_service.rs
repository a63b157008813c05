//! The browser's side of Web Push.
//!
//! Its keys, and how it reads what a push service hands it. Written after RFC 8291 and RFC 8292 with other crates than the service has.

use super::Delivery;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdh::diffie_hellman;
use p256::elliptic_curve::rand_core::OsRng;
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use p256::{PublicKey, SecretKey};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};

/// A browser that was allowed to be notified.
pub struct Browser {
    secret: SecretKey,
    auth: [u8; 16],
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn derived(salt: &[u8], secret: &[u8], info: &[&[u8]], length: usize) -> Vec<u8> {
    let mut key = vec![0; length];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    extracted.expand(info, Bytes(length)).unwrap().fill(&mut key).unwrap();
    key
}

fn point(key: &PublicKey) -> Vec<u8> {
    key.to_encoded_point(false).as_bytes().to_vec()
}

impl Browser {
    pub fn new() -> Self {
        let mut auth = [0; 16];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut auth).unwrap();
        Self { secret: SecretKey::random(&mut OsRng), auth }
    }

    /// The keys of a subscription.
    pub fn keys(&self) -> Value {
        json!({
            "p256dh": URL_SAFE_NO_PAD.encode(point(&self.secret.public_key())),
            "auth": URL_SAFE_NO_PAD.encode(self.auth),
        })
    }

    /// What a message says.
    pub fn read(&self, post: &Delivery) -> Value {
        assert_eq!(post.method, "POST");
        assert_eq!(post.header("content-encoding"), "aes128gcm");
        assert!(post.bytes.len() <= 4096, "{}", post.bytes.len());
        let (salt, rest) = post.bytes.split_at(16);
        let (size, rest) = rest.split_at(4);
        let size = u32::from_be_bytes(size.try_into().unwrap());
        let (id, record) = rest.split_at(1 + usize::from(rest[0]));
        assert!(u32::try_from(record.len()).unwrap() <= size, "one record");
        let sender = PublicKey::from_sec1_bytes(&id[1..]).expect("a key of the sender");
        let shared = diffie_hellman(self.secret.to_nonzero_scalar(), sender.as_affine());
        let own = point(&self.secret.public_key());
        let info: [&[u8]; 3] = [b"WebPush: info\0", &own, &id[1..]];
        let secret = derived(&self.auth, shared.raw_secret_bytes(), &info, 32);
        let key = derived(salt, &secret, &[b"Content-Encoding: aes128gcm\0"], 16);
        let nonce = derived(salt, &secret, &[b"Content-Encoding: nonce\0"], 12);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
        let nonce = Nonce::try_assume_unique_for_key(&nonce).unwrap();
        let mut record = record.to_vec();
        let text = key.open_in_place(nonce, Aad::empty(), &mut record).expect("it is for us");
        let end = text.iter().rposition(|byte| *byte != 0).expect("a delimiter");
        assert_eq!(text[end], 2, "the last record");
        serde_json::from_slice(&text[..end]).expect("a JSON payload")
    }
}

/// What a message claims of its sender, whose key it must be signed with.
pub fn claims(post: &Delivery, public_key: &str) -> Value {
    let proof = post.header("authorization").strip_prefix("vapid ").expect("the scheme");
    let part = |name: &str| {
        let mut parts = proof.split(',').map(str::trim);
        parts.find_map(|part| part.strip_prefix(name)).expect("a part").to_owned()
    };
    let (token, key) = (part("t="), part("k="));
    assert_eq!(key, public_key);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let key = URL_SAFE_NO_PAD.decode(key).unwrap();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
    key.verify(signed.as_bytes(), &signature).expect("signed by that key");
    let (head, claims) = signed.split_once('.').unwrap();
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(read(head)["alg"], "ES256");
    read(claims)
}
