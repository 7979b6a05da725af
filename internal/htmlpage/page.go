// Package htmlpage has what the tools' pages of HTML share: the style, the beginning, and ladders of what two ends sent
// each other. A page is one file. Its Content-Security-Policy forbids everything but the style and one script.
package htmlpage

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io/fs"
	"sync"
)

//go:embed parts.html page.css
var files embed.FS

// Parse reads the templates of a page. They may use "top", with a [Top], and "ladder", with a [Ladder].
func Parse(from fs.FS, name string) *template.Template {
	return template.Must(template.Must(template.ParseFS(files, "parts.html")).ParseFS(from, name))
}

// A Top is the beginning of a page.
type Top struct {
	Title  string
	Policy string
	Style  template.CSS
}

// style is read for the first page, as most runs of a command write none.
var style = sync.OnceValue(func() template.CSS {
	b, err := files.ReadFile("page.css")
	if err != nil {
		panic(err) // it is embedded
	}
	return template.CSS(b)
})

// NewTop returns the beginning of a page that runs this script, which may be empty.
func NewTop(title string, script template.JS) Top {
	t := Top{Title: title, Style: style()}
	t.Policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + source(string(t.Style))
	if script != "" {
		t.Policy += "; script-src " + source(string(script))
	}
	return t
}

// source is how a Content-Security-Policy names a text that it lets through.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
