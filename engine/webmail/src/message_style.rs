//! The text that the engine adds to the end of each HTML message: the style of everything that the
//! message does not style itself.
//!
//! The text is at the end, since a document must begin with its doctype for browsers to use
//! standards mode. All selectors are in `:where()`, which has no specificity. So each rule of the
//! message wins. But attributes such as `bgcolor` lose even against these rules. So each rule
//! leaves out the elements that set its property by an attribute, such as `marginwidth`. One
//! exception: `height:auto` keeps the proportions of an image that `max-width` makes smaller.

use crate::remote_content::RemoteContent;

/// Makes links open in new windows. The frame could not show the targets of links, since the page
/// around the frame forbids frames of other sites.
///
/// The fonts and the ink are those of our pages. The rule for tables makes them inherit both in
/// quirks mode, too. On paper, no text and no image has the colours of a dark screen, which
/// `frames.js` may have given to them. An image is at most as wide as the frame. An image in a
/// table keeps its width, since the columns would shrink with it.
const END: &str = concat!(
    "<base target=\"_blank\"><style>",
    ":where(html){font:93.75%/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"Liberation Sans\",sans-serif;color:#18202c;overflow-wrap:break-word}",
    ":where(body:not([marginwidth],[marginheight],[leftmargin],[topmargin])){margin:14px 16px}",
    ":where(table){font-size:inherit;line-height:inherit;color:inherit}",
    ":where(img:not(table img)){max-width:100%;height:auto}",
    ":where(pre){white-space:pre-wrap}",
    ":where(blockquote){margin:0 0 0 4px;padding-left:12px;border-left:3px solid #d9dfe8}",
    ":where(summary){cursor:pointer;opacity:.75}",
    "@media print{html{color:#000!important;color-scheme:light!important}img{filter:none!important}}",
    "</style>"
);

/// The style of images that are blocked: the alternative text in a box, in place of the browser's
/// icon. An image without text and size is hidden, and so is a tracking pixel: an image with a
/// width or height of 0 or 1.
const BLOCKED: &str = concat!(
    "<style>",
    ":where(img:not([src^=\"data:\" i])){position:relative;outline:1px dashed #7b8699;outline-offset:-1px;font-size:12px;color:#566072}",
    ":where(img:not([src^=\"data:\" i]))::before{content:attr(alt);position:absolute;inset:1px;padding:1px 4px;overflow:hidden;background:#f4f6f9;font:12px/1.3 sans-serif}",
    ":where(img:not([src^=\"data:\" i]):is([width=\"0\"],[height=\"0\"],[width=\"1\"],[height=\"1\"],:not([width],[style*=width],[alt]),[alt=\"\"]:not([width]))){visibility:hidden}",
    "</style>"
);

/// The parts of the text, in their order.
pub(crate) fn end(remote_content: RemoteContent) -> [&'static str; 2] {
    match remote_content {
        RemoteContent::Blocked => [END, BLOCKED],
        RemoteContent::Loaded => [END, ""],
    }
}
