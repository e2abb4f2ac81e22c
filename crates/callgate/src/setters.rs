//! The form of builders: methods that set one value and give the builder back.

/// Defines methods that change the value and return it.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($this:ident, $value:ident: $type:ty) $body:block)*) => {$(
        $(#[$doc])*
        pub fn $name(mut $this, $value: $type) -> Self {
            $body
            $this
        }
    )*};
}

pub(crate) use setters;
