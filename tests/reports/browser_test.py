"""Opens report pages in headless Chromium and uses everything that can be used.

Usage: browser_test.py REPORTS_SAMPLE

REPORTS_SAMPLE prints the page of a sample record by name. A console message of level error, an
uncaught exception, or a request for anything but the page itself and data: fails the test.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGES = ("passed", "leak", "missing_key", "rows_after_rollback", "over_bound", "not_finite",
         "blind", "errored", "large", "hostile")
sample_program = None


def new_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path="/usr/bin/chromedriver")
    return webdriver.Chrome(options=options, service=service)


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kvcheck-pages-")
        for name in PAGES:
            page = subprocess.run([sample_program, name], check=True, capture_output=True).stdout
            pathlib.Path(cls.folder.name, name + ".html").write_bytes(page)
        cls.browser = new_browser()
        cls.browser.set_page_load_timeout(120)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def open(self, name, fragment=""):
        self.address = pathlib.Path(self.folder.name, name + ".html").as_uri()
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get(self.address + fragment)

    def tearDown(self):
        self.check_logs()

    def check_logs(self):
        problems = [entry["message"] for entry in self.browser.get_log("browser")
                    if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(problems, [])
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                self.assertTrue(url.startswith(("file:", "data:")), url)
                if url.startswith("file:"):
                    self.assertEqual(url.split("#")[0], self.address)

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def press(self, keys):
        webdriver.ActionChains(self.browser).send_keys(keys).perform()

    def open_rows(self, finding):
        return self.script(
            "return [...arguments[0].querySelectorAll('tr[data-step]')].filter(r => !r.hidden)"
            ".map(r => Number(r.dataset.step))", finding)

    def test_every_button_and_every_details_on_every_page(self):
        for name in PAGES:
            with self.subTest(page=name):
                self.open(name)
                self.assertEqual(self.script("return document.readyState"), "complete")
                for box in self.all("details"):
                    before = box.get_property("open")
                    self.script("arguments[0].querySelector(':scope > summary').click()", box)
                    self.assertNotEqual(box.get_property("open"), before)
                self.script("for (const d of document.querySelectorAll('details')) d.open = true")
                for button in self.all("button"):
                    inside = self.script("return Boolean(arguments[0].closest('dialog'))", button)
                    if inside:
                        continue
                    self.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button)
                    button.click()
                    if self.find("dialog").get_property("open"):
                        self.find("[data-close]").click()
                        self.assertFalse(self.find("dialog").get_property("open"))
                self.check_logs()

    def test_page_never_scrolls_sideways(self):
        for name in PAGES:
            for width in (320, 390, 800, 1280):
                with self.subTest(page=name, width=width):
                    self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
                    self.open(name)
                    self.script("for (const d of document.querySelectorAll('details')) d.open = true")
                    self.assertLessEqual(
                        self.script("return document.documentElement.scrollWidth"), width)
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_hostile_text_runs_nothing(self):
        self.open("hostile")
        self.assertEqual(self.all("img"), [])
        self.assertEqual(len(self.all("script")), 2)
        self.assertIn("</script>", self.find(".hero").text)

    def test_theme_switch(self):
        self.open("leak")
        ground = "return getComputedStyle(document.body).backgroundColor"
        self.find("[data-theme-choice=dark]").click()
        dark = self.script(ground)
        self.find("[data-theme-choice=light]").click()
        self.assertEqual(self.script(ground), "rgb(255, 255, 255)")
        self.assertEqual(dark, "rgb(20, 24, 29)")
        self.assertEqual(
            self.find("[data-theme-choice=light]").get_attribute("aria-pressed"), "true")
        self.assertEqual(
            self.find("[data-theme-choice=dark]").get_attribute("aria-pressed"), "false")
        self.find("[data-theme-choice=system]").click()
        for scheme, expected in (("dark", dark), ("light", "rgb(255, 255, 255)")):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-color-scheme", "value": scheme}]})
            self.assertEqual(self.script(ground), expected)

    def test_figures_follow_the_theme(self):
        self.open("leak")
        colour = "return getComputedStyle(document.querySelector('svg .f-resident')).fill"
        self.find("[data-theme-choice=dark]").click()
        self.assertEqual(self.script(colour), "rgb(90, 176, 230)")
        self.find("[data-theme-choice=light]").click()
        self.assertEqual(self.script(colour), "rgb(0, 114, 178)")

    def test_filter(self):
        self.open("rows_after_rollback")
        finding = self.find(".finding")
        box = self.find("[data-filter]")
        note = self.find(".filter-note")
        cases = (("verdict:failed", [3]), ("!verdict:failed", [0, 1, 2, 4]),
                 ("event:rollback", [2]), ("step:1-3", [1, 2, 3]), ("step:2", [2]),
                 ("step:1-3 !event:rollback", [1, 3]), ("staged", [4]),
                 ('"append 3"', [4]), ('!"append 3" event:append', [0, 1, 3]), ("", [0, 1, 2, 3, 4]))
        for text, rows in cases:
            with self.subTest(filter=text):
                box.clear()
                box.send_keys(text or " ")
                self.assertEqual(self.open_rows(finding), rows)
        for text in ("colour:red", "step:x"):
            with self.subTest(filter=text):
                box.clear()
                box.send_keys(text)
                self.assertIn("wrong", note.get_attribute("class"))
                self.assertIn(text.split(":")[0], note.text)
                self.assertEqual(self.open_rows(finding), [0, 1, 2, 3, 4])

    def test_failed_only_button(self):
        self.open("rows_after_rollback")
        button = self.find("[data-failed-only]")
        self.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button)
        button.click()
        self.assertEqual(self.open_rows(self.find(".finding")), [3])
        self.assertEqual(button.get_attribute("aria-pressed"), "true")
        button.click()
        self.assertEqual(self.open_rows(self.find(".finding")), [0, 1, 2, 3, 4])

    def test_copy(self):
        self.open("leak")
        self.browser.execute_cdp_cmd("Browser.grantPermissions", {
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        button = self.find("[data-copy]")
        button.click()
        said = self.find("#said")
        WebDriverWait(self.browser, 20).until(lambda _: said.text)
        if said.text == "Copied.":
            copied = self.browser.execute_async_script(
                "navigator.clipboard.readText().then(arguments[0])")
        else:
            copied = self.script("return String(getSelection())")
        self.assertEqual(copied, "./kvcheck replay 3f9a0c55d2e81b47")

    def test_copy_without_a_clipboard_selects_the_text(self):
        self.open("leak")
        self.script("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
        self.find("[data-copy]").click()
        said = self.find("#said")
        WebDriverWait(self.browser, 20).until(lambda _: said.text)
        self.assertIn("Ctrl+C", said.text)
        self.assertEqual(self.script("return String(getSelection())"),
                         "./kvcheck replay 3f9a0c55d2e81b47")

    def test_keys(self):
        self.open("errored")
        first, second = self.all(".finding > details")
        self.assertTrue(first.get_property("open"))
        self.assertFalse(second.get_property("open"))
        self.press("n")
        self.press("n")
        self.assertTrue(second.get_property("open"), "n opens the second finding")
        self.assertIn("Finding 2 of 2", self.find("#said").text)
        self.press("p")
        self.assertIn("Finding 1 of 2", self.find("#said").text)
        self.press("?")
        self.assertTrue(self.find("dialog").get_property("open"))
        self.press("n")
        self.assertNotIn("Finding 2", self.find("#said").text, "keys rest while the dialog is open")
        self.press(Keys.ESCAPE)
        self.assertFalse(self.find("dialog").get_property("open"))

    def test_step_keys(self):
        self.open("rows_after_rollback")
        current = "return document.querySelector('tr.current')?.dataset.step"
        self.press(".")
        self.assertEqual(self.script(current), "3", "the first divergence comes first")
        self.press(".")
        self.assertEqual(self.script(current), "4")
        self.press(".")
        self.assertEqual(self.script(current), "4", "the last step stays")
        self.press(",")
        self.press(",")
        self.assertEqual(self.script(current), "2")
        self.press("f")
        self.assertEqual(self.open_rows(self.find(".finding")), [3])

    def test_typing_in_the_filter_is_not_a_key(self):
        self.open("rows_after_rollback")
        self.press("/")
        box = self.find("[data-filter]")
        self.assertEqual(self.browser.switch_to.active_element, box)
        self.press("nf?.")
        self.assertEqual(box.get_property("value"), "nf?.")
        self.assertFalse(self.find("dialog").get_property("open"))
        self.press(Keys.ESCAPE)
        self.assertNotEqual(self.browser.switch_to.active_element, box)

    def test_keys_without_findings_say_so(self):
        self.open("passed")
        for key in ("n", ".", "f", "/"):
            self.press(key)
        self.assertIn("There are no steps", self.find("#said").text)

    def test_address_opens_what_it_names(self):
        self.open("errored", "#finding-77aa120be45f9d03-4")
        self.assertTrue(self.all(".finding > details")[1].get_property("open"))
        self.open("rows_after_rollback", "#finding-b07e19d35c6a42f8-4?q=event%3Arollback")
        self.assertEqual(self.open_rows(self.find(".finding")), [2])

    def test_every_link_leads_to_something_visible(self):
        self.open("missing_key")
        for link in self.all("a[href^='#']"):
            name = link.get_attribute("href").split("#")[1]
            self.script("location.hash = arguments[0]", name)
            shown = self.script(
                "return document.getElementById(arguments[0]).checkVisibility()", name)
            self.assertTrue(shown, name)

    def test_paper_is_light_and_shows_the_replay(self):
        self.open("leak")
        self.find("[data-theme-choice=dark]").click()
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.assertEqual(self.script("return getComputedStyle(document.body).color"),
                         "rgb(27, 31, 36)")
        self.assertFalse(self.find(".bar").is_displayed())
        self.assertTrue(self.find(".replay code").is_displayed())
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        self.assertGreater(len(self.browser.print_page()), 1000)

    def test_complete_without_script(self):
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.open("leak")
            self.assertFalse(any(button.is_displayed() for button in self.all("button")))
            self.assertTrue(self.find(".finding svg").is_displayed())
            self.assertIn("./kvcheck replay", self.find(".hero").text)
        finally:
            self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sample_program = sys.argv.pop(1)
    unittest.main(verbosity=2)
