/* The start of another core: in real mode, at the start of a page below 1 MiB. The part between
   other_core_start and other_core_end was copied there. It jumps to the image's text at once, so
   the page need not be executable or mapped. There the core runs in protected mode without paging,
   loads the page tables of the first core, and enters long mode on its own stack. The words at the
   end have the tables, the stack and the seat of the core. Cores start one at a time. */

.section .rodata.other_core, "a", @progbits
.code16
.global other_core_start, other_core_end
other_core_start:
    cli
    cld
    mov ax, cs
    mov ds, ax
    .byte 0x66, 0x0f, 0x01, 0x16    /* lgdt with a base of 32 bits */
    .word other_core_gdt_pointer - other_core_start
    mov eax, cr0
    or al, 1
    mov cr0, eax
    .byte 0x66, 0xea                /* far jump to 32 bits */
    .long other_core_protected
    .word 8
.align 4
other_core_gdt_pointer:
    .word 23
    .long other_core_gdt
other_core_end:

.align 8
other_core_gdt:
    .quad 0, 0x00CF9A000000FFFF, 0x00CF92000000FFFF

.section .text.boot, "ax", @progbits
.code32
other_core_protected:
    mov eax, 16
    mov ds, eax
    mov es, eax
    mov ss, eax
    mov eax, cr4
    or eax, 0x620                   /* PAE, OSFXSR, OSXMMEXCPT */
    mov cr4, eax
    mov eax, [other_core_tables]
    mov cr3, eax
    mov ecx, 0xC0000080             /* EFER */
    rdmsr
    or eax, 0x900                   /* LME, NXE */
    wrmsr
    mov eax, cr0
    and eax, 0x9FFFFFF3             /* not CD, NW, TS, EM */
    or eax, 0x80010022              /* PG, WP, NE, MP */
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    ljmp 8, offset other_core_long

.code64
other_core_long:
    mov eax, 16
    mov ds, eax
    mov es, eax
    mov ss, eax
    xor eax, eax
    mov fs, eax
    mov gs, eax
    mov rsp, [other_core_stack]
    mov eax, [other_core_seat]
    mov edx, [other_core_seat + 4]
    mov ecx, 0xC0000101             /* GS base */
    wrmsr
    xor ebp, ebp
    call other_core_main
5:  hlt
    jmp 5b

.section .bss.boot, "aw", @nobits
.align 8
.global other_core_tables, other_core_stack, other_core_seat
other_core_tables: .skip 8
other_core_stack:  .skip 8
other_core_seat:   .skip 8
