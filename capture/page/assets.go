package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"strings"
	"sync"
)

//go:embed page.html page.css js/*.js
var files embed.FS

// scripts are the parts of the script, in their order.
var scripts = [...]string{"data", "words", "strip", "track", "draw", "time", "ladder", "table", "view", "find", "list", "main"}

// An assets is what every page has.
type assets struct {
	html   *template.Template
	style  template.CSS
	script template.JS
	policy string
}

// shared are those of all pages. They are made for the first one, as most runs of the command make none.
var shared = sync.OnceValue(func() *assets {
	a := &assets{html: template.Must(template.ParseFS(files, "page.html")), style: template.CSS(read("page.css")),
		script: template.JS(joined())}
	a.policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + hash(string(a.style)) +
		"'; script-src '" + hash(string(a.script)) + "'"
	return a
})

// joined is the script: its parts in one scope of their own.
func joined() string {
	var b strings.Builder
	b.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		b.WriteString(read("js/" + name + ".js"))
	}
	b.WriteString("})();\n")
	return b.String()
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(b)
}

// hash is how a Content-Security-Policy names a text that it lets through.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
