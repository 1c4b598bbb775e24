package filters

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/gin-gonic/gin"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"kctl/apiserver/internal/request"
)

// The size of all Warning headers of one answer, and the length to which each
// is cut if they exceed it.
const (
	maxWarning     = 256
	maxAllWarnings = 4 * 1024
)

// miscellaneous is the code of warnings that are for people to read (RFC 7234,
// 5.5.7).
const miscellaneous = 299

// Warnings writes the request's warnings into the answer's header, at the last
// possible moment.
func Warnings() gin.HandlerFunc {
	return func(c *gin.Context) {
		w := &warningWriter{ResponseWriter: c.Writer, warnings: request.WarningsFrom(c.Request.Context())}
		c.Writer = w
		c.Next()
		w.WriteHeaderNow()
	}
}

type warningWriter struct {
	gin.ResponseWriter
	warnings *request.Warnings
	done     bool
}

// Unwrap lets http.ResponseController reach the connection.
func (w *warningWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *warningWriter) finish() {
	if w.done || w.ResponseWriter.Written() {
		return
	}
	w.done = true
	if w.warnings == nil {
		return
	}
	all, total := w.warnings.All(), 0
	for _, text := range all {
		total += len(text)
	}
	each := maxAllWarnings
	if total > maxAllWarnings {
		each = maxWarning
	}
	room := maxAllWarnings
	for _, text := range all {
		line, err := utilnet.NewWarningHeader(miscellaneous, "-", clean(text, each))
		if err != nil {
			continue // nothing that clean returns is refused
		}
		if room -= len(line); room < 0 {
			return
		}
		w.Header().Add("Warning", line)
	}
}

// clean reduces a warning to one line of a maximum length, as the header's
// format requires (RFC 7234, 5.5). Webhooks may send anything.
func clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

func (w *warningWriter) WriteHeaderNow() {
	w.finish()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *warningWriter) Write(b []byte) (int, error) {
	w.finish()
	return w.ResponseWriter.Write(b)
}

func (w *warningWriter) WriteString(s string) (int, error) {
	w.finish()
	return w.ResponseWriter.WriteString(s)
}

func (w *warningWriter) Flush() {
	w.finish()
	w.ResponseWriter.Flush()
}

func (w *warningWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.finish()
	return w.ResponseWriter.Hijack()
}
