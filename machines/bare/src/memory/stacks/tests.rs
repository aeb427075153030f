//! The stacks of a core fill its memory, with a page under each that belongs to none.

use super::*;

#[test]
fn under_each_stack_of_a_core_lies_a_page_of_nobody() {
    const START: u64 = 5 << 20;
    let mut end = START;
    for (top, bytes) in Stacks::at(START).parts() {
        assert_eq!(top - bytes, end + PAGE_BYTES);
        end = top;
    }
    assert_eq!(end, START + CORE_BYTES);
}
