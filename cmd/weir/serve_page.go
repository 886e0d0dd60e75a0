package main

import (
	"bytes"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode"
)

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --link: #0550ae; --line: #d8dee4; }
@media (prefers-color-scheme: dark) { :root { --ink: #d1d7e0; --paper: #15191f; --link: #6cb6ff; --line: #363d47; } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
a { color: var(--link); text-decoration: none; overflow-wrap: anywhere; }
a:hover { text-decoration: underline; }
h1 { font-size: 1.2rem; font-weight: 600; }
table { width: 100%%; border-collapse: collapse; }
td, th { padding: .2rem .5rem; border-bottom: 1px solid var(--line); text-align: left; font-weight: inherit; }
td + td, th + th { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
</style>
</head>
<body>
<h1>`

// listPage is the page of a folder. Links are relative to it, so that they hold behind any prefix.
func listPage(name string, entries []entry, more bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, pageHead, shown(pathOf(name)))
	writeTrail(&b, name)
	b.WriteString("</h1>\n<table>\n<thead><tr><th>name</th><th>size</th><th>changed (UTC)</th></tr></thead>\n<tbody>\n")
	if name != "." {
		b.WriteString("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n")
	}
	for _, e := range entries {
		writeEntry(&b, e)
	}
	b.WriteString("</tbody>\n</table>\n")
	switch {
	case more:
		fmt.Fprintf(&b, "<p>There is more: these are %s entries of it.</p>\n", grouped(uint64(len(entries))))
	case len(entries) == 0:
		b.WriteString("<p>Nothing here.</p>\n")
	}
	b.WriteString("</body>\n</html>\n")
	return b.Bytes()
}

// pathOf is the path of a name in the folder.
func pathOf(name string) string {
	if name == "." {
		return "/"
	}
	return "/" + name + "/"
}

// writeTrail writes a link to each folder on the way.
func writeTrail(b *bytes.Buffer, name string) {
	elements := []string{}
	if name != "." {
		elements = strings.Split(name, "/")
	}
	up := len(elements)
	step := func(text string) {
		if up == 0 {
			b.WriteString(shown(text))
			return
		}
		fmt.Fprintf(b, `<a href="%s">%s</a>`, strings.Repeat("../", up), shown(text))
		up--
	}
	step("/")
	for _, e := range elements {
		step(e + "/")
	}
}

func writeEntry(b *bytes.Buffer, e entry) {
	name, size := e.name, shortBytes(e.size)
	href := "./" + url.PathEscape(name)
	if e.dir {
		name, href, size = name+"/", href+"/", ""
	}
	fmt.Fprintf(b, "<tr><td><a href=\"%s\">%s</a></td><td>%s</td><td>%s</td></tr>\n",
		html.EscapeString(href), shown(name), size, e.changed.UTC().Format("2006-01-02 15:04"))
}

// shown is a name as HTML, isolated from the direction of the text around it; what cannot be shown is a replacement
// character.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || isDirection(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, string(unicode.ReplacementChar)))
	return html.EscapeString(name)
}

// isDirection says that the character turns the text around it, so that a name may look like another.
func isDirection(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// shortBytes is a size with three digits: 512 B, 1.5 kB, 23 MB.
func shortBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n), -1
	for f >= 999.5 && unit < len("kMGTPE")-1 {
		f /= 1000
		unit++
	}
	digits := 0
	if f < 9.95 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %cB", digits, f, "kMGTPE"[unit])
}
