/* The PVH entry: 32-bit protected mode, paging off, interrupts off, ebx = physical address of
   hvm_start_info. It checks for an x86-64-v2 processor with NX, and maps the first GiB one to one
   for the boot (memory/paging.rs makes the permanent tables). It turns on SSE, NX and write
   protection, and calls image_main with (start info, time-stamp counter at entry) on the main
   stack. */

.section .note.Xen, "a", @note
.align 4
.long 4, 4, 18                      /* name size, description size, XEN_ELFNOTE_PHYS32_ENTRY */
.asciz "Xen"
.long pvh_start

.section .text.boot, "ax", @progbits
.code32
.global pvh_start
pvh_start:
    cli
    cld
    rdtsc
    mov [boot_entry_tsc], eax
    mov [boot_entry_tsc + 4], edx
    mov edi, ebx                    /* cpuid destroys ebx */
    lea esp, [__main_stack_top]

    mov eax, 1
    cpuid
    and ecx, 0x00982201             /* POPCNT, SSE4.2, SSE4.1, CMPXCHG16B, SSSE3, SSE3 */
    cmp ecx, 0x00982201
    jne boot_old_processor
    mov eax, 0x80000001
    cpuid
    and edx, 0x20100000             /* long mode, NX */
    cmp edx, 0x20100000
    jne boot_old_processor

    lea eax, [boot_pdpt + 3]        /* present, writable */
    mov [boot_pml4], eax
    lea eax, [boot_directory + 3]
    mov [boot_pdpt], eax
    mov eax, 0x83                   /* present, writable, 2 MiB page */
    xor ecx, ecx
1:  mov [boot_directory + ecx * 8], eax
    add eax, 0x200000
    inc ecx
    cmp ecx, 512
    jb 1b
    lea eax, [boot_pml4]
    mov cr3, eax

    mov eax, cr4
    or eax, 0x620                   /* PAE, OSFXSR, OSXMMEXCPT */
    mov cr4, eax
    mov ecx, 0xC0000080             /* EFER */
    rdmsr
    or eax, 0x900                   /* LME, NXE */
    wrmsr
    mov eax, cr0
    and eax, 0x9FFFFFF3             /* not CD, NW, TS, EM */
    or eax, 0x80010022              /* PG, WP, NE, MP */
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    ljmp 8, offset boot_long

/* Prints one line on the first serial port. */
boot_old_processor:
    lea esi, [boot_old_processor_text]
2:  mov al, [esi]
    test al, al
    jz 3f
    mov dx, 0x3f8
    out dx, al
    inc esi
    jmp 2b
3:  hlt
    jmp 3b

.code64
boot_long:
    mov eax, 16
    mov ds, eax
    mov es, eax
    mov ss, eax
    xor eax, eax
    mov fs, eax
    mov gs, eax
    lea rsp, [__main_stack_top]
    lea eax, [core_seats]           /* GS points at the first core's seat (cpu/cores.rs) */
    xor edx, edx
    mov ecx, 0xC0000101             /* GS base */
    wrmsr
    mov edi, edi
    mov rsi, [boot_entry_tsc]
    xor ebp, ebp
    call image_main
4:  hlt
    jmp 4b

.section .rodata.boot, "a", @progbits
.align 8
.global boot_gdt_pointer
boot_gdt:
    .quad 0, 0x00AF9A000000FFFF, 0x00CF92000000FFFF
boot_gdt_pointer:
    .word 23
    .long boot_gdt
boot_old_processor_text:
    .asciz "barepost: this processor lacks x86-64-v2 or NX\r\n"

.section .bss.boot, "aw", @nobits
.align 4096
boot_pml4:      .skip 4096
boot_pdpt:      .skip 4096
boot_directory: .skip 4096
boot_entry_tsc: .skip 8
