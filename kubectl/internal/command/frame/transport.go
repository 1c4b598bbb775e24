package frame

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/shell"
)

// WrapTransport shows users the traffic: the server's warnings always, the
// requests with -v.
func (c *CLI) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return &loggingTransport{CLI: c, next: next, warned: map[string]bool{}}
}

// The levels of -v, as kubectl's.
const (
	showDetails  = 5
	showRequests = 6
	showHeaders  = 7
	showBodies   = 8
	showCurl     = 9
)

// maxShown is how much of a body is shown below the level that prints curl commands.
const maxShown = 1024

type loggingTransport struct {
	*CLI
	next     http.RoundTripper
	warned   map[string]bool
	refusals sync.Map // of requests that are made again, by attempt: what was answered last
}

func (v *loggingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	began := v.Clock.Now()
	if v.Verbosity >= showHeaders {
		if err := v.showRequest(request); err != nil {
			return nil, err
		}
	}
	heard := v.warnWhenSlow(request)
	response, err := v.next.RoundTrip(request)
	heard()
	took := v.Clock.Since(began).Milliseconds()
	if err != nil {
		if v.Verbosity >= showRequests {
			fmt.Fprintf(v.Err, "\"Response\" verb=%q url=%q status=\"\" milliseconds=%d err=%q\n", request.Method, request.URL, took, err)
		}
		return nil, err
	}
	if v.Verbosity >= showRequests {
		fmt.Fprintf(v.Err, "\"Response\" verb=%q url=%q status=%q milliseconds=%d\n", request.Method, request.URL, response.Status, took)
	}
	if v.Verbosity >= showBodies && !isLongRunning(request) {
		v.showAnswer(response)
	}
	v.showWarnings(response)
	v.noteRefusal(request, response)
	return response, nil
}

// attempt is what a request and those that repeat it have in common.
func attempt(request *http.Request) string { return request.Method + " " + request.URL.String() }

// patience is how long a server may be silent before the user is told.
const patience = 10 * time.Second

// warnWhenSlow tells the user after patience that a server does not answer, unless
// the function that it returns is called before. The request goes on:
// --request-timeout says how long to wait.
func (v *loggingTransport) warnWhenSlow(request *http.Request) func() {
	if isLongRunning(request) {
		return func() {}
	}
	return v.Later(patience, func() {
		if refusal, ok := v.refusals.Load(attempt(request)); ok {
			v.Warn("%s has answered %q, and is asked again: Ctrl-C gives up, --request-timeout says when to", request.URL.Host, refusal)
			return
		}
		v.Warn("no answer yet from %s to %s %s: Ctrl-C gives up, --request-timeout says when to",
			request.URL.Host, request.Method, request.URL.Path)
	})
}

// noteRefusal remembers why a request is made again, by whoever made this one.
func (v *loggingTransport) noteRefusal(request *http.Request, response *http.Response) {
	if response.Header.Get("Retry-After") == "" {
		v.refusals.Delete(attempt(request))
		return
	}
	var status metav1.Status
	_ = json.Unmarshal(peek(response, maxShown), &status) // what is not JSON has no message
	v.refusals.Store(attempt(request), cmp.Or(status.Message, response.Status))
}

// peek returns the first bytes of the answer, and leaves it whole to others.
func peek(response *http.Response, most int64) []byte {
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	response.Body = readCloser{io.MultiReader(bytes.NewReader(body), &failingReader{err}, response.Body), response.Body}
	return body
}

// readCloser reads from one and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

// isLongRunning tells whether an answer may go on without end.
func isLongRunning(request *http.Request) bool {
	query := request.URL.Query()
	return query.Has("watch") || query.Has("follow")
}

// showRequest shows what is about to be sent: its headers and its body, or, one
// level up, the command line that would do the same. Credentials are added
// further down, and are not shown.
func (v *loggingTransport) showRequest(request *http.Request) error {
	var body []byte
	if request.Body != nil && v.Verbosity >= showBodies {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return fmt.Errorf("reading the request's body: %w", err)
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	names := slices.Sorted(maps.Keys(request.Header))
	if v.Verbosity >= showCurl {
		line := "curl -v -X" + request.Method
		for _, name := range names {
			line += " -H " + shell.Quoted(name+": "+strings.Join(request.Header[name], ","))
		}
		if len(body) > 0 {
			line += " --data-binary " + shell.Quoted(string(body))
		}
		fmt.Fprintf(v.Err, "%s %s\n", line, shell.Quoted(request.URL.String()))
		return nil
	}
	for _, name := range names {
		fmt.Fprintf(v.Err, "    %s: %s\n", name, strings.Join(request.Header[name], ","))
	}
	if len(body) > 0 {
		fmt.Fprintf(v.Err, "Request Body: %s\n", v.redact(body))
	}
	return nil
}

func (v *loggingTransport) showAnswer(response *http.Response) {
	fmt.Fprintf(v.Err, "Response Body: %s\n", v.redact(peek(response, math.MaxInt64)))
}

// failingReader passes on the error that ended reading.
type failingReader struct{ err error }

func (f *failingReader) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

func (v *loggingTransport) redact(body []byte) string {
	if v.Verbosity >= showCurl || len(body) <= maxShown {
		return string(body)
	}
	return fmt.Sprintf("%s [truncated %d chars]", body[:maxShown], len(body)-maxShown)
}

// showWarnings reads Warning headers (`299 agent "text"`), each text once.
func (v *loggingTransport) showWarnings(response *http.Response) {
	for _, header := range response.Header.Values("Warning") {
		start := strings.IndexByte(header, '"')
		if start < 0 {
			continue
		}
		quoted, err := strconv.QuotedPrefix(header[start:])
		if err != nil {
			continue
		}
		text, err := strconv.Unquote(quoted)
		if err != nil || v.warned[text] {
			continue
		}
		v.warned[text] = true
		v.heard.Add(1)
		v.Warn("%s", text)
	}
}
