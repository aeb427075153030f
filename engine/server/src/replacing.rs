//! What the engine does for the certificates: it gives them the parts that they use, and takes what
//! they have for others to these.

use alloc::boxed::Box;
use alloc::sync::Arc;

use certificates::{Certificates, Context, Event};
use channel::Class;

use crate::common::Common;
use crate::engine::Engine;
use crate::links::Message;

impl Engine {
    /// Lets the certificates act, and takes to others what they have for them.
    pub(crate) fn let_certificates<R>(&mut self, act: impl FnOnce(&mut Certificates, &mut Context<'_>) -> R) -> R {
        let Common { turn, connections, store, console, .. } = &mut self.common;
        let result = act(&mut self.services.certificates, &mut Context { turn: *turn, connections, store, console });
        self.bring_events_of_certificates();
        result
    }

    #[inline(never)]
    fn bring_events_of_certificates(&mut self) {
        while let Some(event) = self.services.certificates.next_event() {
            let Common { turn, connections, links, store, console, .. } = &mut self.common;
            match event {
                Event::Upload(keeper, upload) => links.tell(keeper, Class::Answer, Message::Upload(upload)),
                Event::Show(shown) => {
                    let others = links.tell_others(Class::Answer, || Message::Certificates(Arc::clone(&shown)));
                    let cx = &mut Context { turn: *turn, connections, store, console };
                    self.services.certificates.others_are_told(others, cx);
                }
                Event::Shows(keeper) => links.tell(keeper, Class::Answer, Message::CertificatesShown),
                Event::Replaced(ticket, replaced) => {
                    let message = Message::Uploaded(ticket.frame, Box::new(replaced));
                    links.tell(ticket.core, Class::Answer, message);
                }
                Event::PagesAreOutdated => self.services.web.forget_pages(),
            }
        }
    }
}
