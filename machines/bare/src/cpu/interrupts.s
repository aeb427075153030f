/* The interrupt entries. Every class of vectors runs on a separate stack (IST) with interrupts off.
   No entry nests, and none changes a vector register. The reason is that prebuilt code uses the
   bytes below its stack pointer, and all registers.
   - Exceptions (0 to 31) never return: they save the registers for the report and panic.
   - Device and timer interrupts only end a `hlt`: they signal the end of interrupt and return. */

.section .text.interrupts, "ax", @progbits
.p2align 4
.global exception_entries
exception_entries:
.set vector, 0
.rept 32
.p2align 4
    .if (vector != 8) && (vector != 10) && (vector != 11) && (vector != 12) && (vector != 13) && (vector != 14) && (vector != 17) && (vector != 21) && (vector != 29) && (vector != 30)
    .byte 0x6a, 0                   /* push 0: the processor pushes no error code for this vector */
    .endif
    .byte 0x6a, vector              /* push vector */
    jmp exception_entry
    .set vector, vector + 1
.endr

.p2align 4
exception_entry:
    push rax
    push rbx
    push rcx
    push rdx
    push rsi
    push rdi
    push rbp
    push r8
    push r9
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
    mov rdi, rsp
    cld
    and rsp, -16
    call exception_arrived
    ud2

.p2align 4
.global interrupt_entry_xapic
interrupt_entry_xapic:
    push rax
    mov eax, 0xFEE000B0             /* end of interrupt */
    mov dword ptr [rax], 0
    pop rax
    iretq

.p2align 4
.global interrupt_entry_x2apic
interrupt_entry_x2apic:
    push rax
    push rcx
    push rdx
    mov ecx, 0x80B                  /* end of interrupt */
    xor eax, eax
    xor edx, edx
    wrmsr
    pop rdx
    pop rcx
    pop rax
    iretq

.p2align 4
.global interrupt_entry_spurious
interrupt_entry_spurious:
    iretq
