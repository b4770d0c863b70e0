/* html_parts.S — what stands around the data of a page: cmake/page.cmake puts it together out of tools/web/. */
    .section .rodata
    .global html_head, html_head_end, html_tail, html_tail_end
html_head:
    .incbin "page_head.html"
html_head_end:
    .byte 0
html_tail:
    .incbin "page_tail.html"
html_tail_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
