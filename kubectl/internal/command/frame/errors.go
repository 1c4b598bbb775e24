package frame

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/clientcmd"

	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/printer"
)

// The exit codes: kubectl's, and the shell's for an interrupted program.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitInterrupted = 130
)

// ExitCode ends kctl with a code and without a message: a container's exit
// code, for example.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// bareError is one before which kubectl does not write "error: ".
type bareError struct{ error }

func (e *bareError) Unwrap() error { return e.error }

// NoResource is err for verbs whose word for an unknown resource, in kubectl, is the mapper's
// own: without "error: " before it.
func NoResource(err error) error {
	if unknown, ok := errors.AsType[*discover.NoResourceError](err); ok {
		return &bareError{unknown}
	}
	return err
}

// sourceError says which file an error is about.
type sourceError struct {
	doing, source string
	err           error
}

func (e *sourceError) Error() string {
	return fmt.Sprintf("error when %s %q: %v", e.doing, e.source, e.err)
}

func (e *sourceError) Unwrap() error { return e.err }

// Report writes what went wrong and returns the exit code. It is the only
// place where errors become text.
func (c *CLI) Report(ctx context.Context, err error) int {
	if err == nil && c.Strict {
		err = c.warnings()
	}
	if err == nil {
		return ExitOK
	}
	if code, ok := errors.AsType[ExitCode](err); ok {
		return int(code)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	all := flatten(err)
	for _, each := range all {
		text := c.Text(each)
		if len(all) > 1 {
			text = strings.TrimPrefix(text, "error: ") // one of a list, as kubectl has it
		}
		fmt.Fprintln(c.Err, printer.Visible(strings.TrimRight(text, "\n"))) // it may contain text from servers
	}
	return ExitError
}

// warnings is the error that --warnings-as-errors makes of the servers' warnings.
func (c *CLI) warnings() error {
	switch count := c.heard.Load(); count {
	case 0:
		return nil
	case 1:
		return errors.New("1 warning received")
	default:
		return fmt.Errorf("%d warnings received", count)
	}
}

// flatten splits joined errors; each is reported on its own.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // only what is joined at the top
		var all []error
		for _, each := range joined.Unwrap() {
			all = append(all, flatten(each)...)
		}
		return all
	}
	return []error{err}
}

// Text says an error in kubectl's words.
func (c *CLI) Text(err error) string {
	if status, from := statusOf(err); status != nil {
		unauthorized := status.Status().Reason == metav1.StatusReasonUnauthorized
		return statusText(status, from) + withoutTLS(status) + managedByOthers(status) +
			withoutRoom(status.ErrStatus.Message) + c.certificateAdvice(unauthorized)
	}
	if bare, ok := err.(*bareError); ok { //nolint:errorlint // what wraps it is an error with a prefix
		return bare.Error()
	}
	if _, ok := errors.AsType[*discover.NoKindError](err); ok {
		return "error: " + err.Error() + "\nensure CRDs are installed first"
	}
	var wrong utilerrors.Aggregate
	if clientcmd.IsConfigurationInvalid(err) && errors.As(err, &wrong) {
		return configurationText(wrong.Errors())
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return c.connectionText(failed) + c.certificateAdvice(strings.Contains(failed.Err.Error(), "remote error: tls"))
	}
	return "error: " + strings.TrimPrefix(err.Error(), "error: ") + hint(err) + withoutRoom(err.Error())
}

// withoutTLS is a line on what to do when a server that speaks TLS was spoken to
// without it. Go's servers then answer with this text and no Status.
func withoutTLS(status *apierrors.StatusError) string {
	if status.ErrStatus.Details == nil {
		return ""
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse && strings.Contains(cause.Message, "HTTP request to an HTTPS server") {
			return "\n(The server expects HTTPS, but its address begins with http://: change it to https://.)"
		}
	}
	return ""
}

// managedByOthers says what to do about fields that an apply in the server would take from
// somebody.
func managedByOthers(status *apierrors.StatusError) string {
	if details := status.ErrStatus.Details; details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeFieldManagerConflict
	}) {
		return ""
	}
	return "\nThese fields are managed by others, as the message says.\n" +
		"* To manage them instead, run the command again with --force-conflicts.\n" +
		"* To leave them to the others, remove them from the manifest.\n" +
		"* To manage them together, give them the values in the manifest that they have.\n" +
		"See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"
}

// withoutRoom is a line on what to do when etcd has used up its quota, which no room on
// the disk helps.
func withoutRoom(text string) string {
	if strings.Contains(text, "mvcc: database space exceeded") {
		return "\n(etcd's storage quota is exhausted, so it accepts only deletions: docs/troubleshooting.md says how to make room.)"
	}
	return ""
}

// configurationText says what is wrong with a kubeconfig.
func configurationText(all []error) string {
	if len(all) == 1 {
		return "error: " + all[0].Error()
	}
	text := "Error in configuration: "
	for _, each := range all {
		text += "\n* " + each.Error()
	}
	return text
}

// certificateAdvice is a line about the user's certificate, if the server did not accept
// it and its dates explain why.
func (c *CLI) certificateAdvice(disbelieved bool) string {
	if !disbelieved || c.loaded == nil {
		return ""
	}
	if why := c.loaded.Untimely(c.Clock.Now()); why != "" {
		return "\n" + why
	}
	return ""
}

// hint says what probably caused an unreadable answer, and what to do about a full
// disk.
func hint(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "error loading config file") && strings.Contains(text, "couldn't get version/kind"):
		return " (is it a kubeconfig?)"
	case errors.Is(err, syscall.ENOSPC):
		return " (`df -h` tells which disk is full)"
	case errors.Is(err, context.DeadlineExceeded) && strings.Contains(text, "read answer"):
		return " (the server stopped within its answer)"
	case errors.Is(err, io.ErrUnexpectedEOF) && strings.Contains(text, "read answer"):
		return " (the connection was lost within the answer)"
	case strings.Contains(text, "decode answer") && !strings.Contains(text, "is it a"):
		return " (is it a Kubernetes API server?)"
	}
	return ""
}

// statusOf finds what a server said, and the file it is about. A status that a
// verb wrapped in words of its own is that verb's error, not the server's, as
// in kubectl.
func statusOf(err error) (*apierrors.StatusError, *sourceError) {
	from, _ := err.(*sourceError) //nolint:errorlint // see above
	if from != nil {
		err = from.err
	}
	status, _ := err.(*apierrors.StatusError) //nolint:errorlint // see above
	return status, from
}

func statusText(status *apierrors.StatusError, from *sourceError) string {
	s := status.Status()
	message := s.Message
	if from != nil {
		message = fmt.Sprintf("error when %s %q: %s", from.doing, from.source, s.Message)
	}
	switch {
	case s.Reason == metav1.StatusReasonUnauthorized:
		return fmt.Sprintf("error: You must be logged in to the server (%s)", message)
	case s.Reason == metav1.StatusReasonInvalid && s.Details != nil && len(s.Details.Causes) > 0:
		return invalidText(s)
	case s.Reason == "" || s.Reason == metav1.StatusReasonUnknown:
		return "Error from server: " + message
	}
	return fmt.Sprintf("Error from server (%s): %s", s.Reason, message)
}

// invalidText lists what is wrong with an object, a field a line.
func invalidText(s metav1.Status) string {
	head := fmt.Sprintf("The %s %q is invalid", s.Details.Kind, s.Details.Name)
	if s.Details.Kind == "" && s.Details.Name == "" {
		head = "The request is invalid"
	}
	var causes []string
	for _, cause := range s.Details.Causes {
		causes = append(causes, cause.Field+": "+cause.Message)
	}
	if len(causes) == 1 {
		return head + ": " + causes[0]
	}
	return head + ": \n* " + strings.Join(causes, "\n* ")
}

func (c *CLI) connectionText(failed *url.Error) string {
	if errors.Is(failed.Err, syscall.ECONNREFUSED) {
		host, local := failed.URL, ""
		if u, err := url.Parse(failed.URL); err == nil {
			host = u.Host
			// Not a file's address, say.
			if net.ParseIP(u.Hostname()).IsLoopback() && c.client != nil && c.client.URL("").Host == host {
				local = "\n(\"kctl status\" shows the state of the cluster on this machine, \"kctl up\" starts programs that are not running.)"
			}
		}
		return fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?%s", host, local)
	}
	if failed.Timeout() {
		return fmt.Sprintf("Unable to connect to the server: %v (no answer in time)", failed.Err)
	}
	var invalid x509.CertificateInvalidError
	if errors.As(failed.Err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Sprintf("Unable to connect to the server: %v (check this machine's clock; kctl doctor shows whether the clock "+
			"or the certificate is wrong)", failed.Err)
	}
	return fmt.Sprintf("Unable to connect to the server: %v", failed.Err)
}

// InSource adds the file an object came from to an error about it.
func InSource(err error, doing, source string) error {
	if err == nil || source == "" {
		return err
	}
	if _, inSource := err.(*sourceError); inSource { //nolint:errorlint // only what is told at the top
		return err
	}
	return &sourceError{doing: doing, source: source, err: err}
}
