package proxy

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// rewriter turns links to the target's root into links through the proxy: in
// Location headers, and in the attributes of HTML pages. Links in scripts and
// styles are not rewritten.
type rewriter struct {
	prefix            string // the escaped path below which the target is served
	requested, target string // the hosts that refer to the target
}

// urlAttributes are the HTML attributes that hold a URL.
var urlAttributes = map[string]bool{
	"action": true, "background": true, "cite": true, "classid": true, "codebase": true, "data": true, "formaction": true, "href": true,
	"icon": true, "longdesc": true, "manifest": true, "poster": true, "profile": true, "src": true, "usemap": true,
}

// RemoveCORS removes CORS headers from an answer: this server sets them.
func RemoveCORS(answer http.Header) {
	for name := range answer {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(answer, name)
		}
	}
}

func (rw rewriter) rewriteResponse(answer *http.Response) error {
	RemoveCORS(answer.Header)
	if location := answer.Header.Get("Location"); location != "" {
		answer.Header.Set("Location", rw.rewriteLink(location))
		return nil
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind != "text/html" || answer.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	var page io.Reader = answer.Body
	switch answer.Header.Get("Content-Encoding") {
	case "":
	case "gzip":
		if answer.Request.Method == http.MethodHead {
			break
		}
		if page, err = gzip.NewReader(page); err != nil {
			return err
		}
		answer.Header.Del("Content-Encoding")
	default:
		return nil
	}
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	answer.Body = &rewritten{rewriter: rw, from: page, page: html.NewTokenizer(page), body: answer.Body}
	answer.Body.(*rewritten).page.SetMaxBuf(maxToken)
	return nil
}

// rewriteLink is the address of a target's link through the proxy.
func (rw rewriter) rewriteLink(text string) string {
	u, err := url.Parse(text)
	if err != nil || !strings.HasPrefix(u.Path, "/") || u.Host != "" && u.Host != rw.target && u.Host != rw.requested {
		return text
	}
	path := u.EscapedPath()
	if path == rw.prefix || strings.HasPrefix(path, rw.prefix+"/") {
		return text
	}
	if u.Host == rw.target {
		u.Scheme, u.Host = "", ""
	}
	u.RawPath = rw.prefix + path
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return text
	}
	return u.String()
}

// maxToken bounds how much of a page is buffered: a longer tag, script or text,
// and what follows it, passes unchanged.
const maxToken = 1 << 20

// rewritten reads a page with its links rewritten.
type rewritten struct {
	rewriter
	from io.Reader // behind page
	page *html.Tokenizer
	body io.Closer
	out  []byte    // rewritten and not read yet
	rest io.Reader // what passes unchanged
}

func (r *rewritten) Close() error { return r.body.Close() }

func (r *rewritten) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.rest == nil {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if len(r.out) == 0 {
		return r.rest.Read(p)
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *rewritten) next() error {
	kind := r.page.Next()
	r.out = append(r.out[:0], r.page.Raw()...)
	switch kind {
	case html.ErrorToken:
		err := r.page.Err()
		if !errors.Is(err, html.ErrBufferExceeded) {
			if len(r.out) > 0 && errors.Is(err, io.EOF) {
				r.rest = strings.NewReader("")
				return nil
			}
			return err
		}
		r.out = append(r.out, r.page.Buffered()...)
		r.rest = r.from
	case html.StartTagToken, html.SelfClosingTagToken:
		token := r.page.Token()
		changed := false
		for i, attribute := range token.Attr {
			if !urlAttributes[attribute.Key] {
				continue
			}
			if link := r.rewriteLink(attribute.Val); link != attribute.Val {
				token.Attr[i].Val, changed = link, true
			}
		}
		if changed {
			r.out = append(r.out[:0], token.String()...)
		}
	}
	return nil
}
