"""What `cargo xtask dist --target aarch64` makes, without a machine of that kind.

DIST is the directory of what is shipped, EMULATOR a qemu for aarch64, FOREIGN_LIBRARIES a root with Debian's C library for it.
"""
