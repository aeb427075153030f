//! Tests of the stacks: the stacks of a core fill their memory, with an unused page under each.

use super::*;

#[test]
fn each_core_stack_has_an_unmapped_guard_page_below() {
    const START: u64 = 5 << 20;
    let mut end = START;
    for (top, bytes) in Stacks::at(START).parts() {
        assert_eq!(top - bytes, end + PAGE_BYTES);
        end = top;
    }
    assert_eq!(end, START + CORE_BYTES);
}
