"""Less frequent actions: folders, changes of many messages, replies to all, forwarding, printing, search, the password and sessions. A part of `webmail.py`."""

import random
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from barepost import options
from mail import DOMAIN, PASSWORD
from processes import until
from webdriver import ANSWER_SECONDS
from webmail_reader import row

FILE_BYTES = 30_000
OTHER_PASSWORD = "another horse battery staple"


class Filing:
    """The actions in one kind of browser."""

    def test_folders_are_created_filled_renamed_and_deleted(self):
        subject, name = self.deliver("Verse"), self.unique("Poems")
        self.log_in("ada")
        browser = self.browser
        browser.click(".account summary")
        browser.follow("//a[.='Folders']")
        browser.type("#new", name)
        browser.follow("button[value=make]")
        self.assertIn(f"Folder “{name}” created.", browser.text(".notice"))
        browser.follow("a.brand")
        self.choose(subject)
        browser.click(f"//select[@id='move']/option[.='{name}']")
        browser.follow("button[value=move]")
        self.assertIn(f"Message moved to {name}.", browser.text(".notice"))
        self.box(name)
        self.assertTrue(browser.is_there(row(subject)))
        browser.go(self.address("/mail/boxes"))
        own = f"//section[@aria-label='{name}']"
        browser.write(f"{own}//input[@name='name']", f"{name}, old")
        browser.follow(f"{own}//button[@value='rename']")
        self.assertIn(f"Folder renamed to “{name}, old”.", browser.text(".notice"))
        own = f"//section[@aria-label='{name}, old']"
        browser.click(f"{own}//summary")
        self.assertIn("Its message will be moved to Trash.", browser.text(own))
        browser.follow(f"{own}//button[@value='remove']")
        self.assertIn("Folder deleted.", browser.text(".notice"))
        self.assertFalse(browser.is_there(f"//nav//a[span[1]='{name}, old']"))
        self.box("Trash")
        self.assertTrue(browser.is_there(row(subject)))

    def test_a_change_of_many_messages_can_be_undone(self):
        subjects = [self.deliver(name) for name in ("One", "Two", "Three")]
        self.log_in("ada")
        browser = self.browser
        for button, words in (("archive", "Archive"), ("trash", "Trash")):
            for subject in subjects:
                self.choose(subject)
            browser.follow(f"button[value={button}]")
            self.assertIn(f"3 messages moved to {words}.", browser.text(".notice"))
            self.assertFalse(any(browser.is_there(row(subject)) for subject in subjects))
            browser.follow(".notice button")
            self.assertTrue(all(browser.is_there(row(subject)) for subject in subjects))

    def test_a_message_is_answered_to_all_and_forwarded_with_files(self):
        subject, content = self.unique("Plans"), random.Random(options.seed).randbytes(FILE_BYTES)
        file = self.folder / "plan.bin"
        file.write_bytes(content)
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#to", f"grace@{DOMAIN}")
        browser.click(".others summary")
        browser.type("#cc", f"barbara@{DOMAIN}")
        browser.type("#subject", subject)
        browser.type("#files", str(file))
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.log_in("grace")
        self.open(subject)
        browser.follow("//a[.='Reply all']")
        self.assertEqual((browser.value("#to"), browser.value("#cc")), (f"ada@{DOMAIN}", f"barbara@{DOMAIN}"))
        browser.type("#text", "To both of you.\n")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.open(subject)
        browser.follow("//*[@id='opened']//a[.='Forward'] | //article//a[.='Forward']")
        self.assertIn(file.name, browser.text("ul.attachments"))
        browser.type("#to", f"edsger@{DOMAIN}")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        for user in ("ada", "barbara"):
            self.assertIn(b"To both of you.", self.machine.mailbox(user)[-1].raw)
        self.log_in("edsger")
        self.open(f"Fwd: {subject}")
        browser.click(".attachments a")
        self.assertSame(browser.downloaded(file.name), content, "the file")

    def test_text_and_quotations_keep_their_direction(self):
        subject = self.deliver("Right", "שלום עדה,\r\n\r\nמה שלומך?\r\n\r\n> The loom weaves.\r\n\r\nلقد وصلت الرسالة.")
        self.log_in("ada")
        self.open(subject)
        run = self.browser.run
        self.assertEqual(run("return ['.prose', '.prose blockquote'].map(one => getComputedStyle(document.querySelector(one)).direction)"), ["rtl", "ltr"])
        self.assertLess(run("return ['.message', '.prose'].map(one => document.querySelector(one).getBoundingClientRect().right).reduce((all, own) => all - own)"), 40)
        self.assertEqual(run("return document.querySelector('.prose blockquote + p').textContent"), "لقد وصلت الرسالة.", "behind what is quoted is no empty line")

    def test_a_conversation_is_printed_on_a_page_of_its_own(self):
        subject = self.deliver("Printed")
        self.log_in("ada")
        self.open(subject)
        browser = self.browser
        browser.click(".more summary")
        # The dialog would stay open.
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source="window.print = () => {}")
        browser.click("//a[.='Print']")
        self.assertIn("It computes.", browser.text("body.paper"))
        self.assertEqual("Print command" in browser.text("body.paper"), not self.scripts)
        self.assertFalse(browser.is_there("nav, form"))
        browser.click("a.back")
        self.assertEqual(browser.text("h1.subject"), subject)

    def test_search_operators_narrow_a_search(self):
        wanted, other = self.deliver("Narrow", "The loom weaves."), self.deliver("Narrow", "The mill grinds.")
        self.log_in("ada")
        browser = self.browser
        browser.follow(row(wanted, "//button[@name='star']"))
        for words, finds_wanted, finds_other in (
            ("from:charles subject:narrow", True, True), (f'"{wanted}" is:starred in:inbox', True, False), ("narrow -loom is:unread", False, True),
            ("narrow has:attachment", False, False), ("narrow after:2020-01-01 before:2021-01-01", False, False), ("narrow to:ada@ after:2020-01-01", True, True),
        ):
            browser.write("#search", words)
            browser.follow("form.search button")
            self.assertEqual(browser.value("#search"), words)
            self.assertEqual((browser.is_there(row(wanted)), browser.is_there(row(other))), (finds_wanted, finds_other), words)

    def test_back_leads_to_the_search_and_the_row(self):
        subjects = [self.deliver(f"Found {number}") for number in range(30 if self.scripts else 2)]
        self.log_in("ada")
        browser = self.browser
        search = self.address("/mail/search?q=found")
        browser.go(search)
        browser.run("scrollTo(0, document.body.scrollHeight)")
        scrolled = browser.run("return scrollY")
        browser.follow(row(subjects[0], "//a[@class='what']"))
        self.assertEqual(browser.text("h1.subject"), subjects[0])
        browser.follow("a.back")
        self.assertEqual(browser.address, search)
        if self.scripts:
            self.assertEqual(browser.run("return scrollY"), scrolled)
        browser.follow(row(subjects[0], "//a[@class='what']"))
        browser.follow("button[value=archive]")
        self.assertIn("Message moved to Archive.", browser.text(".notice"))
        self.assertEqual(browser.value("#search"), "found")

    def test_the_page_of_a_missing_item_links_to_the_inbox(self):
        self.log_in("ada")
        browser = self.browser
        for path in ("/mail/box/1/99999", "/mail/box/99", "/mail/nothing"):
            browser.go(self.address(path))
            self.assertIn("This page does not exist, or what it showed was moved or deleted.", browser.text("main"))
            browser.click("//a[.='Go to Inbox']")
            self.assertEqual(browser.text("h1"), "Inbox")

    def test_times_are_in_the_zone_of_the_reader(self):
        """The browser's zone counts with scripts, and the setting without. Searches use the setting."""
        browser, zone = self.browser, ZoneInfo("Australia/Adelaide")
        browser.devtools("Emulation.setTimezoneOverride", timezoneId=zone.key)
        subject = self.deliver("Zoned", to="edsger")
        self.log_in("edsger")
        settings = self.address("/mail/settings")
        if self.scripts:
            # Without a setting, the next page reports the zone.
            browser.go(settings)
            browser.write("#zone", "")
            browser.follow("button[value=save]")
            until(lambda: browser.go(settings) or browser.value("#zone") == zone.key, ANSWER_SECONDS, "the zone of the browser is set")
        else:
            browser.go(settings)
            browser.write("#zone", "Mars/Olympus_Mons")
            browser.follow("button[value=save]")
            self.assertIn("There is no such time zone.", browser.text(".notice"))
            browser.write("#zone", zone.key)
            browser.follow("button[value=save]")
            self.assertIn("Settings saved.", browser.text(".notice"))
        browser.go(self.address("/mail/box/1"))
        time = row(subject, "//time")
        moment = datetime.fromisoformat(browser.attribute(time, "datetime")).astimezone(zone)
        shown = browser.text(time).upper().replace("\u202f", " ")
        self.assertIn(shown, (moment.strftime("%H:%M"), moment.strftime("%I:%M %p").lstrip("0")))
        if self.scripts:
            self.assertIn(str(moment.year), browser.attribute(time, "title"))
            self.assertRegex(browser.attribute(time, "title"), "GMT.(9|10):30|AC[DS]T")
        self.open(subject)
        browser.follow("//a[.='Reply']")
        self.assertIn(f"On {moment.day} {moment:%b %Y, %H:%M} ({moment:%z}), Charles Babbage wrote:", browser.value("#text"))
        day = moment.date()
        for words, finds in ((f"after:{day}", True), (f"before:{day}", False), (f"after:{day + timedelta(days=1)}", False)):
            browser.go(self.address(f"/mail/search?q={words}"))
            self.assertEqual(browser.is_there(row(subject)), finds, words)

    def test_a_password_change_needs_the_current_password(self):
        browser = self.browser
        self.log_in("edsger")

        def change(old, new, again):
            browser.go(self.address("/mail/settings"))
            for name, value in (("old", old), ("new", new), ("again", again)):
                browser.type(f"#{name}", value)
            browser.follow("button[value=password]")
            return browser.text(".notice")

        self.assertNotIn("Password changed", change("a guess", OTHER_PASSWORD, OTHER_PASSWORD))
        self.assertNotIn("Password changed", change(PASSWORD, OTHER_PASSWORD, PASSWORD))
        self.assertIn("Password changed.", change(PASSWORD, OTHER_PASSWORD, OTHER_PASSWORD))
        browser.forget()
        browser.go(self.address("/mail/login"))
        self.submit_login("edsger", PASSWORD)
        self.assertIn("Wrong email address or password.", browser.text("main"))
        self.submit_login("edsger", OTHER_PASSWORD)
        self.assertEqual(browser.text("h1"), "Inbox")
        self.assertIn("Password changed.", change(OTHER_PASSWORD, PASSWORD, PASSWORD))

    def test_list_density_is_chosen_and_one_session_is_ended(self):
        self.log_in("barbara")
        browser = self.browser
        elsewhere = browser.cookies()
        self.log_in("barbara")
        browser.go(self.address("/mail/settings"))
        for density in ("Compact", "Comfortable"):
            browser.click(f"//select[@id='density']/option[.='{density}']")
            browser.follow("button[value=save]")
            self.assertEqual(browser.attribute("html", "data-density"), density.lower())
        while browser.is_there("ul.lines button"):
            browser.follow("ul.lines button")
        self.assertIn('name="password"', self.ask("/mail/box/1", elsewhere))
        self.assertIn("this device", browser.text("ul.lines"))
