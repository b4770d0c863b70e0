/* html_parts.S — the parts of a page around its data. cmake/page.cmake makes them from tools/web/. */
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
