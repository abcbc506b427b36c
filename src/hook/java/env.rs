//! Calls of a Java VM, on threads that are attached to it. An exception that one brings about ends there: the call gives
//! `None` then. None may be called while an exception is pending: see `undisturbed`.
#![allow(unsafe_code)]

use super::modified;
use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};
use jni_sys as sys;

pub use sys::{jmethodID as Method, jobject as Object};

/// `JNI_VERSION_1_6`: what every Android has.
const VERSION: sys::jint = sys::JNI_VERSION_1_6;

/// The VM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Vm(NonNull<sys::JavaVM>);

// SAFETY: the invocation interface may be called from any thread.
unsafe impl Send for Vm {}

/// What a thread calls the VM by. Objects that it gives are valid within `frame` at most.
#[derive(Clone, Copy)]
pub struct Env(NonNull<sys::JNIEnv>);

/// A function of the VM's tables, called with the table's owner and the arguments.
macro_rules! call {
    ($owner:expr, $version:ident . $name:ident ( $($argument:expr),* )) => {{
        let owner = $owner.as_ptr();
        // SAFETY: the tables are those of a live VM, and have this function by their version; the arguments are what it
        // takes, by the types in this file.
        unsafe { ((**owner).$version.$name)(owner, $($argument),*) }
    }};
}

impl Vm {
    /// # Safety
    /// The pointer is null or leads to a VM, which stays as long as the process.
    pub unsafe fn from_raw(vm: *mut c_void) -> Option<Vm> {
        NonNull::new(vm.cast()).map(Vm)
    }

    /// The calling thread's, if it is attached and the VM has not gone down.
    pub fn env(self) -> Option<Env> {
        let mut env = ptr::null_mut();
        let result = call!(self.0, v1_2.GetEnv(&raw mut env, VERSION));
        NonNull::new(env.cast()).filter(|_| result == sys::JNI_OK).map(Env)
    }

    /// Attaches the calling thread, which the VM does not wait for when it goes down.
    pub fn attach(self, name: &CStr) -> Option<Env> {
        let mut arguments =
            sys::JavaVMAttachArgs { version: VERSION, name: name.as_ptr().cast_mut(), group: ptr::null_mut() };
        let mut env = ptr::null_mut();
        let result = call!(self.0, v1_4.AttachCurrentThreadAsDaemon(&raw mut env, (&raw mut arguments).cast()));
        NonNull::new(env.cast()).filter(|_| result == sys::JNI_OK).map(Env)
    }

    /// Undoes `attach`.
    pub fn detach(self) {
        // A VM that is gone would keep the thread for ever.
        if self.env().is_some() {
            call!(self.0, v1_1.DetachCurrentThread());
        }
    }
}

impl Env {
    /// # Safety
    /// The pointer is what the VM has given to a native method that the calling thread is in.
    pub unsafe fn from_raw(env: *mut sys::JNIEnv) -> Option<Env> {
        NonNull::new(env).map(Env)
    }

    /// Runs `run` with no exception pending, and puts back the one that was.
    pub fn undisturbed<T>(self, run: impl FnOnce() -> T) -> T {
        let pending = call!(self.0, v1_1.ExceptionOccurred());
        if pending.is_null() {
            return run();
        }
        call!(self.0, v1_1.ExceptionClear());
        let result = run();
        call!(self.0, v1_1.Throw(pending));
        call!(self.0, v1_1.DeleteLocalRef(pending));
        result
    }

    /// Runs `run`, whose objects are given up afterwards.
    pub fn frame<T>(self, run: impl FnOnce() -> Option<T>) -> Option<T> {
        if call!(self.0, v1_2.PushLocalFrame(32)) != 0 {
            self.is_fine();
            return None;
        }
        let result = run();
        call!(self.0, v1_2.PopLocalFrame(ptr::null_mut()));
        result
    }

    /// Nothing was thrown. What was is forgotten.
    fn is_fine(self) -> bool {
        let is_fine = !call!(self.0, v1_2.ExceptionCheck());
        if !is_fine {
            call!(self.0, v1_1.ExceptionClear());
        }
        is_fine
    }

    fn fine<T>(self, pointer: *mut T) -> Option<*mut T> {
        (self.is_fine() && !pointer.is_null()).then_some(pointer)
    }

    /// A class of the system's, by its name with slashes.
    pub fn class(self, name: &CStr) -> Option<Object> {
        self.fine(call!(self.0, v1_1.FindClass(name.as_ptr())))
    }

    /// An object's class.
    pub fn class_of(self, object: Object) -> Option<Object> {
        self.fine(call!(self.0, v1_1.GetObjectClass(object)))
    }

    /// Calls a method of an object's that gives an object; null counts as `None`.
    pub fn get(self, object: Object, name: &CStr, signature: &CStr, arguments: &[Object]) -> Option<Object> {
        let method = self.method(object, name, signature)?;
        let values = values(arguments);
        self.fine(call!(self.0, v1_1.CallObjectMethodA(object, method, values.as_ptr())))
    }

    /// Calls one that gives nothing.
    pub fn run(self, object: Object, name: &CStr, signature: &CStr, arguments: &[Object]) -> Option<()> {
        let method = self.method(object, name, signature)?;
        let values = values(arguments);
        call!(self.0, v1_1.CallVoidMethodA(object, method, values.as_ptr()));
        self.is_fine().then_some(())
    }

    /// Calls one that gives a truth.
    pub fn ask(self, object: Object, name: &CStr, signature: &CStr, arguments: &[Object]) -> Option<bool> {
        let method = self.method(object, name, signature)?;
        let values = values(arguments);
        let answer = call!(self.0, v1_1.CallBooleanMethodA(object, method, values.as_ptr()));
        self.is_fine().then_some(answer)
    }

    /// A method of an object's.
    pub fn method(self, object: Object, name: &CStr, signature: &CStr) -> Option<Method> {
        let class = self.class_of(object)?;
        let method = self.fine(call!(self.0, v1_1.GetMethodID(class, name.as_ptr(), signature.as_ptr())));
        self.give_up(class);
        method
    }

    /// Calls a class's method without arguments that gives an object.
    pub fn get_static(self, class: Object, name: &CStr, signature: &CStr) -> Option<Object> {
        let method = self.fine(call!(self.0, v1_1.GetStaticMethodID(class, name.as_ptr(), signature.as_ptr())))?;
        self.fine(call!(self.0, v1_1.CallStaticObjectMethodA(class, method, ptr::null())))
    }

    /// Calls one that gives a truth.
    pub fn ask_static(self, class: Object, name: &CStr) -> Option<bool> {
        let method = self.fine(call!(self.0, v1_1.GetStaticMethodID(class, name.as_ptr(), c"()Z".as_ptr())))?;
        let answer = call!(self.0, v1_1.CallStaticBooleanMethodA(class, method, ptr::null()));
        self.is_fine().then_some(answer)
    }

    /// A new object, by a constructor with so many arguments, all of them objects.
    pub fn construct(self, class: Object, signature: &CStr, arguments: &[Object]) -> Option<Object> {
        let method = self.fine(call!(self.0, v1_1.GetMethodID(class, c"<init>".as_ptr(), signature.as_ptr())))?;
        let values = values(arguments);
        self.fine(call!(self.0, v1_1.NewObjectA(class, method, values.as_ptr())))
    }

    /// What an object's field holds; `Some(null)` for null, `None` for no such field.
    pub fn field(self, object: Object, name: &CStr, signature: &CStr) -> Option<Object> {
        let class = self.class_of(object)?;
        let field = self.fine(call!(self.0, v1_1.GetFieldID(class, name.as_ptr(), signature.as_ptr())));
        self.give_up(class);
        Some(call!(self.0, v1_1.GetObjectField(object, field?)))
    }

    /// The same of a class's.
    pub fn static_field(self, class: Object, name: &CStr, signature: &CStr) -> Option<Object> {
        let field = self.fine(call!(self.0, v1_1.GetStaticFieldID(class, name.as_ptr(), signature.as_ptr())))?;
        Some(call!(self.0, v1_1.GetStaticObjectField(class, field)))
    }

    /// Puts an object into a class's field.
    pub fn set_static_field(self, class: Object, name: &CStr, signature: &CStr, value: Object) -> Option<()> {
        let field = self.fine(call!(self.0, v1_1.GetStaticFieldID(class, name.as_ptr(), signature.as_ptr())))?;
        call!(self.0, v1_1.SetStaticObjectField(class, field, value));
        Some(())
    }

    /// What a class's field says.
    pub fn static_flag(self, class: Object, name: &CStr) -> Option<bool> {
        let field = self.fine(call!(self.0, v1_1.GetStaticFieldID(class, name.as_ptr(), c"Z".as_ptr())))?;
        Some(call!(self.0, v1_1.GetStaticBooleanField(class, field)))
    }

    /// Gives native methods of a class's their functions.
    ///
    /// # Safety
    /// Each function is of its method's type.
    pub unsafe fn register(self, class: Object, natives: &[(&CStr, &CStr, *mut c_void)]) -> Option<()> {
        natives.iter().try_for_each(|(name, signature, function)| {
            let method = sys::JNINativeMethod {
                name: name.as_ptr().cast_mut(),
                signature: signature.as_ptr().cast_mut(),
                fnPtr: *function,
            };
            let result = call!(self.0, v1_1.RegisterNatives(class, &raw const method, 1));
            (self.is_fine() && result == 0).then_some(())
        })
    }

    /// A string of Java's.
    pub fn string(self, text: &CStr) -> Option<Object> {
        self.fine(call!(self.0, v1_1.NewStringUTF(text.as_ptr())))
    }

    /// How many of Java's characters a string of Java's has.
    pub fn string_length(self, string: Object) -> usize {
        usize::try_from(call!(self.0, v1_1.GetStringLength(string))).unwrap_or(0)
    }

    /// Copies a string of Java's from its `from`th character on; how many bytes. One that does not fit is cut, between
    /// characters.
    pub fn copy_string(self, string: Object, from: usize, room: &mut [u8]) -> usize {
        let length = self.string_length(string).saturating_sub(from).min(letters_in(room));
        call!(
            self.0,
            v1_2.GetStringUTFRegion(string, from as sys::jsize, length as sys::jsize, room.as_mut_ptr().cast())
        );
        let length = if self.is_fine() { room.iter().position(|byte| *byte == 0).unwrap_or(0) } else { 0 };
        modified::to_standard(room.get_mut(..length).unwrap_or(&mut []))
    }

    /// A buffer of Java's over bytes that stay, and that nobody writes to.
    pub fn buffer_of(self, bytes: &'static [u8]) -> Option<Object> {
        let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as sys::jlong);
        self.fine(call!(self.0, v1_4.NewDirectByteBuffer(start, length)))
    }

    /// A reference to the object that is valid on all threads until it is let go.
    pub fn keep(self, object: Object) -> Option<Object> {
        self.fine(call!(self.0, v1_1.NewGlobalRef(object)))
    }

    /// Undoes `keep`.
    pub fn let_go(self, kept: Object) {
        call!(self.0, v1_1.DeleteGlobalRef(kept));
    }

    /// Elements of an array of objects.
    pub fn length(self, array: Object) -> usize {
        usize::try_from(call!(self.0, v1_1.GetArrayLength(array))).unwrap_or(0)
    }

    /// One of them.
    pub fn element(self, array: Object, place: usize) -> Option<Object> {
        self.fine(call!(self.0, v1_1.GetObjectArrayElement(array, place as sys::jsize)))
    }

    /// Calls a method without arguments that gives an object, of many objects of one class.
    pub fn get_by(self, object: Object, method: Method) -> Option<Object> {
        self.fine(call!(self.0, v1_1.CallObjectMethodA(object, method, ptr::null())))
    }

    /// Are two the same object?
    pub fn is_same(self, one: Object, other: Object) -> bool {
        call!(self.0, v1_1.IsSameObject(one, other))
    }

    /// Gives up an object before its frame does.
    pub fn give_up(self, object: Object) {
        call!(self.0, v1_1.DeleteLocalRef(object));
    }
}

/// How many of Java's characters fit, whichever they are.
pub fn letters_in(room: &[u8]) -> usize {
    // A NUL is written behind, and one takes three bytes at most.
    room.len().saturating_sub(1) / 3
}

fn values(objects: &[Object]) -> [sys::jvalue; 2] {
    let mut values = [sys::jvalue { l: ptr::null_mut() }; 2];
    values.iter_mut().zip(objects).for_each(|(value, object)| value.l = *object);
    values
}
