//! Calls of the Kerberos library, and owners of what it hands out.
//!
//! Two rules of RFC 2744 make them safe: a buffer that is handed in is only read, during the call; and what a call hands out belongs
//! to the caller, who gives it back by the release call of its kind, once. The library may be called by any number of threads, as
//! long as no two use one context at a time: `Context` is therefore changed by its caller, and credentials and names are not.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use libloading::Library;

use crate::{Accepted, GssError};

const LIBRARY: &str = "libgssapi_krb5.so.2";

/// `OM_uint32`.
type Status = u32;
type NamePtr = *mut c_void;
type CredentialPtr = *mut c_void;
type ContextPtr = *mut c_void;

/// `gss_buffer_desc`.
#[repr(C)]
struct Buffer {
    len: usize,
    bytes: *mut c_void,
}

/// `gss_OID_desc`.
#[repr(C)]
struct Oid {
    len: u32,
    bytes: *mut c_void,
}

/// `gss_OID_set_desc`.
#[repr(C)]
struct OidSet {
    count: usize,
    oids: *mut Oid,
}

/// `gss_key_value_element_desc`.
#[repr(C)]
struct KeyValue {
    key: *const c_char,
    value: *const c_char,
}

/// `gss_key_value_set_desc`.
#[repr(C)]
struct KeyValues {
    count: u32,
    elements: *mut KeyValue,
}

/// 1.2.840.113554.1.2.2: Kerberos 5.
const KERBEROS: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";
/// 1.2.840.113554.1.2.2.1: names that are principals.
const PRINCIPAL_NAME: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01";

/// `GSS_C_ACCEPT`.
const TO_ACCEPT: c_int = 2;
/// `GSS_C_INDEFINITE`.
const FOREVER: u32 = u32::MAX;
/// `GSS_S_CONTINUE_NEEDED`.
const CONTINUES: Status = 1;
/// Bits of a status that tell of errors.
const ERRORS: Status = 0xffff_0000;
/// `GSS_C_GSS_CODE` and `GSS_C_MECH_CODE`.
const CODE_TYPES: [c_int; 2] = [1, 2];

macro_rules! calls {
    ($($call:ident($($argument:ty),* $(,)?);)*) => {
        /// The library's functions; their arguments are those of RFC 2744, in its order.
        pub(crate) struct Calls {
            $($call: unsafe extern "C" fn(*mut Status, $($argument),*) -> Status,)*
        }

        impl Calls {
            fn load() -> Result<Calls, libloading::Error> {
                // SAFETY: what this library does when it is loaded, it does in each program that is linked with it.
                let library = unsafe { Library::new(LIBRARY)? };
                let calls = Calls {
                    // SAFETY: the symbol has the type that the library's header gives it.
                    $($call: unsafe { *library.get(concat!(stringify!($call), "\0").as_bytes())? },)*
                };
                // The functions are called until the process ends.
                std::mem::forget(library);
                Ok(calls)
            }
        }
    };
}

calls! {
    gss_import_name(*const Buffer, *const Oid, *mut NamePtr);
    gss_display_name(NamePtr, *mut Buffer, *mut *mut Oid);
    gss_canonicalize_name(NamePtr, *const Oid, *mut NamePtr);
    gss_release_name(*mut NamePtr);
    gss_acquire_cred_from(
        NamePtr, u32, *const OidSet, c_int, *const KeyValues, *mut CredentialPtr, *mut *mut OidSet, *mut u32,
    );
    gss_release_cred(*mut CredentialPtr);
    gss_accept_sec_context(
        *mut ContextPtr, CredentialPtr, *const Buffer, *mut c_void, *mut NamePtr, *mut *mut Oid, *mut Buffer, *mut u32,
        *mut u32, *mut CredentialPtr,
    );
    gss_delete_sec_context(*mut ContextPtr, *mut Buffer);
    gss_wrap(ContextPtr, c_int, u32, *const Buffer, *mut c_int, *mut Buffer);
    gss_unwrap(ContextPtr, *const Buffer, *mut Buffer, *mut c_int, *mut u32);
    gss_display_status(u32, c_int, *const Oid, *mut u32, *mut Buffer);
    gss_release_buffer(*mut Buffer);
}

impl Buffer {
    const EMPTY: Buffer = Buffer { len: 0, bytes: ptr::null_mut() };

    /// Valid for calls that only read, as long as `bytes` are there.
    fn to_read(bytes: &[u8]) -> Buffer {
        Buffer { len: bytes.len(), bytes: bytes.as_ptr().cast_mut().cast() }
    }
}

impl Oid {
    /// Valid for calls, none of which changes one.
    fn new(bytes: &'static [u8]) -> Oid {
        let len = u32::try_from(bytes.len()).expect("an object's number is short");
        Oid { len, bytes: bytes.as_ptr().cast_mut().cast() }
    }
}

impl Calls {
    /// The library, loaded once for the process.
    pub(crate) fn loaded() -> Result<&'static Calls, GssError> {
        static CALLS: OnceLock<Result<Calls, String>> = OnceLock::new();
        let calls = CALLS.get_or_init(|| Calls::load().map_err(|error| error.to_string()));
        calls.as_ref().map_err(|error| GssError::Load(error.clone()))
    }

    /// Copies what a call has handed out, and gives it back.
    fn take(&self, mut buffer: Buffer) -> Vec<u8> {
        let bytes = match NonNull::new(buffer.bytes.cast::<u8>()) {
            // SAFETY: the library has filled `len` bytes of its own.
            Some(bytes) => unsafe { std::slice::from_raw_parts(bytes.as_ptr(), buffer.len) }.to_vec(),
            None => Vec::new(),
        };
        let mut minor = 0;
        // SAFETY: the buffer is one that the library has handed out, or empty, and is not used behind this.
        unsafe { (self.gss_release_buffer)(&mut minor, &mut buffer) };
        bytes
    }

    /// An error if the status of a call tells of one.
    fn check(&self, major: Status, minor: Status) -> Result<(), GssError> {
        if major & ERRORS == 0 {
            return Ok(());
        }
        let mut texts: Vec<String> = Vec::new();
        for (code, kind) in [major, minor].into_iter().zip(CODE_TYPES) {
            let text = self.describe(code, kind);
            // The text says nothing but that the next text says more.
            let is_empty = text.is_empty() || text.starts_with("Unspecified GSS failure");
            if !is_empty && !texts.contains(&text) && code != 0 {
                texts.push(text);
            }
        }
        if texts.is_empty() {
            texts.push(format!("status {major:#x}, {minor}"));
        }
        Err(GssError::Refused(texts.join(": ")))
    }

    fn describe(&self, code: Status, kind: c_int) -> String {
        let (mut minor, mut more, mut text) = (0, 0, Buffer::EMPTY);
        let mechanism = Oid::new(KERBEROS);
        // SAFETY: all pointers are valid during the call.
        let major =
            unsafe { (self.gss_display_status)(&mut minor, code, kind, &mechanism, &mut more, &mut text) };
        let text = self.take(text);
        if major & ERRORS == 0 { String::from_utf8_lossy(&text).trim().to_owned() } else { String::new() }
    }
}

/// A name of a client or service.
pub(crate) struct Name {
    calls: &'static Calls,
    name: NamePtr,
}

impl Name {
    pub(crate) fn of_principal(calls: &'static Calls, principal: &str) -> Result<Name, GssError> {
        let (text, kind) = (Buffer::to_read(principal.as_bytes()), Oid::new(PRINCIPAL_NAME));
        let (mut minor, mut name) = (0, ptr::null_mut());
        // SAFETY: all pointers are valid during the call, and the name belongs to `Name`.
        let major = unsafe { (calls.gss_import_name)(&mut minor, &text, &kind, &mut name) };
        calls.check(major, minor)?;
        Ok(Name { calls, name })
    }

    /// The name as Kerberos has it: one without a realm gets the default one.
    pub(crate) fn of_kerberos(&self) -> Result<Name, GssError> {
        let (calls, kerberos) = (self.calls, Oid::new(KERBEROS));
        let (mut minor, mut name) = (0, ptr::null_mut());
        // SAFETY: the name is valid, and so are all pointers during the call; the new name belongs to `Name`.
        let major = unsafe { (calls.gss_canonicalize_name)(&mut minor, self.name, &kerberos, &mut name) };
        calls.check(major, minor)?;
        Ok(Name { calls, name })
    }

    pub(crate) fn text(&self) -> Result<String, GssError> {
        let (mut minor, mut text) = (0, Buffer::EMPTY);
        // SAFETY: the name is valid, and so are all pointers during the call.
        let major =
            unsafe { (self.calls.gss_display_name)(&mut minor, self.name, &mut text, ptr::null_mut()) };
        let text = self.calls.take(text);
        self.calls.check(major, minor)?;
        String::from_utf8(text).map_err(|_| GssError::Refused("a name that is not UTF-8".into()))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the name was handed out by the library, or is none, and is not used behind this.
        unsafe { (self.calls.gss_release_name)(&mut minor, &mut self.name) };
    }
}

/// Credentials of a service.
pub(crate) struct Credential {
    calls: &'static Calls,
    credential: CredentialPtr,
}

// SAFETY: the library locks credentials itself; any number of threads may accept with one at a time.
unsafe impl Send for Credential {}
// SAFETY: as above.
unsafe impl Sync for Credential {}

impl Credential {
    /// Credentials to accept tickets for `name` with keys of `keytab`, or of the default one.
    pub(crate) fn to_accept(
        calls: &'static Calls,
        name: &Name,
        keytab: Option<&CStr>,
    ) -> Result<Credential, GssError> {
        let mut kerberos = Oid::new(KERBEROS);
        let mechanisms = OidSet { count: 1, oids: &mut kerberos };
        let mut element =
            KeyValue { key: c"keytab".as_ptr(), value: keytab.map_or(ptr::null(), CStr::as_ptr) };
        let store = KeyValues { count: 1, elements: &mut element };
        let store = if keytab.is_some() { &raw const store } else { ptr::null() };
        let (mut minor, mut credential) = (0, ptr::null_mut());
        // SAFETY: all pointers are valid during the call, and the credential belongs to `Credential`.
        let major = unsafe {
            (calls.gss_acquire_cred_from)(
                &mut minor,
                name.name,
                FOREVER,
                &mechanisms,
                TO_ACCEPT,
                store,
                &mut credential,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        calls.check(major, minor)?;
        Ok(Credential { calls, credential })
    }
}

impl Drop for Credential {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the credential was handed out by the library, and is not used behind this.
        unsafe { (self.calls.gss_release_cred)(&mut minor, &mut self.credential) };
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// The security context of one client.
pub(crate) struct Context {
    calls: &'static Calls,
    context: ContextPtr,
}

// SAFETY: a context is not bound to the thread that made it, and no two threads use it at a time: its caller changes it.
unsafe impl Send for Context {}

impl Context {
    pub(crate) fn new(calls: &'static Calls) -> Context {
        Context { calls, context: ptr::null_mut() }
    }

    pub(crate) fn accept(&mut self, credential: &Credential, token: &[u8]) -> Result<Accepted, GssError> {
        let calls = self.calls;
        let token = Buffer::to_read(token);
        let mut client = Name { calls, name: ptr::null_mut() };
        let (mut minor, mut answer) = (0, Buffer::EMPTY);
        // SAFETY: the context is none or one that the library has handed out; all pointers are valid during the call, and where
        // they may be null, RFC 2744 lets the caller leave the answer out.
        let major = unsafe {
            (calls.gss_accept_sec_context)(
                &mut minor,
                &mut self.context,
                credential.credential,
                &token,
                ptr::null_mut(),
                &mut client.name,
                ptr::null_mut(),
                &mut answer,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let answer = calls.take(answer);
        calls.check(major, minor)?;
        if major & CONTINUES != 0 {
            return Ok(Accepted::Continues(answer));
        }
        Ok(Accepted::Established { principal: client.text()?, token: answer })
    }

    pub(crate) fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, GssError> {
        let context = self.established()?;
        let message = Buffer::to_read(message);
        let (mut minor, mut token) = (0, Buffer::EMPTY);
        // SAFETY: the context is one that the library has handed out; all pointers are valid during the call.
        let major = unsafe {
            (self.calls.gss_wrap)(&mut minor, context, 0, 0, &message, ptr::null_mut(), &mut token)
        };
        let token = self.calls.take(token);
        self.calls.check(major, minor)?;
        Ok(token)
    }

    pub(crate) fn unwrap(&mut self, token: &[u8]) -> Result<Vec<u8>, GssError> {
        let context = self.established()?;
        let token = Buffer::to_read(token);
        let (mut minor, mut message) = (0, Buffer::EMPTY);
        // SAFETY: as in `wrap`.
        let major = unsafe {
            (self.calls.gss_unwrap)(
                &mut minor,
                context,
                &token,
                &mut message,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let message = self.calls.take(message);
        self.calls.check(major, minor)?;
        Ok(message)
    }

    fn established(&self) -> Result<ContextPtr, GssError> {
        if self.context.is_null() {
            return Err(GssError::Refused("no token was accepted before".into()));
        }
        Ok(self.context)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the context is none or one that the library has handed out, and is not used behind this.
        unsafe { (self.calls.gss_delete_sec_context)(&mut minor, &mut self.context, ptr::null_mut()) };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("is_begun", &!self.context.is_null()).finish_non_exhaustive()
    }
}
