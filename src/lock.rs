//! A lock for a few instructions, which costs one atomic exchange where nobody else wants it: half of a mutex.

use std::cell::UnsafeCell;
use std::hint;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A value that one thread at a time may use. Who has to wait spins briefly, then sleeps in between: a holder that lost its processor
/// gets it back even from threads of a higher priority.
#[derive(Default)]
pub(crate) struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, of which there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to use the value.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Neither `Send` nor `Sync` by itself.
    not_send: std::marker::PhantomData<*mut T>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        // acquire: pairs with the release of the holder before.
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Guard { lock: self, not_send: std::marker::PhantomData }
    }

    /// Without a guard: nobody else knows the value.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[cold]
    fn wait(&self) {
        for turn in 0.. {
            // acquire: as in `lock`; relaxed: looks only, so that the line stays with the holder.
            if !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire) {
                return;
            }
            if turn < 1000 {
                hint::spin_loop();
            } else {
                thread::sleep(Duration::from_micros(50));
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the only guard, see `Lock`.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the only guard, see `Lock`.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // release: pairs with the acquire of the next holder.
        self.lock.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Lock;
    use std::thread;
    use std::time::Duration;

    /// Increments that are no atomic operations, by threads that also have to sleep for the lock.
    #[test]
    fn one_at_a_time() {
        let lock = Lock::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..200 {
                        let mut value = lock.lock();
                        let before = *value;
                        if turn % 50 == 0 {
                            thread::sleep(Duration::from_micros(200));
                        }
                        *value = before + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 800);
    }
}
