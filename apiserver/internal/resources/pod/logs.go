package pod

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/status"
	"kctl/proto/core"
)

// maxRefusal bounds how much of a kubelet's refusal is passed on.
const maxRefusal = 64 << 10

// Log is pods/log: a container's log, from its node's kubelet.
func (s *Streams) Log() registry.Subresource {
	return registry.Subresource{
		Name:    "log",
		Kind:    corev1.SchemeGroupVersion.WithKind("Pod"),
		Connect: map[string]func(context.Context, http.ResponseWriter, *http.Request, string, string) error{http.MethodGet: s.log},
	}
}

func (s *Streams) log(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error {
	options, err := logOptions(name, r.URL.Query())
	if err != nil {
		return err
	}
	pod, err := registry.GetStored[*core.Pod](ctx, s.pods, namespace, name)
	if err != nil {
		return err
	}
	container, err := chooseContainer(pod, options.Container)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" { // nothing has run: no log
		if wsstream.IsWebSocketRequest(r) {
			sendLog(w, r, http.NoBody, func() {})
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
		return nil
	}
	to, err := s.url(ctx, pod, []string{"containerLogs", namespace, name, container}, logQuery(options))
	if err != nil {
		return err
	}
	answer, err := s.kubelets.Get(ctx, to, options.InsecureSkipTLSVerifyBackend)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if location := answer.Header.Get("Location"); location != "" && answer.StatusCode >= 300 && answer.StatusCode < 400 {
		return redirected(to, location)
	}
	if answer.StatusCode != http.StatusOK {
		return refusal(answer, name)
	}
	body := io.Reader(answer.Body)
	if options.LimitBytes != nil {
		body = io.LimitReader(body, *options.LimitBytes)
	}
	sendLog(w, r, body, func() { _ = answer.Body.Close() })
	return nil
}

// copyFlushing passes lines on as they come. An error means that one side has
// gone away, which can't be reported, since the status has been sent.
func copyFlushing(w http.ResponseWriter, from io.Reader) {
	flusher := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			if flusher.Flush() != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// redirected refuses to follow a kubelet's redirect, as upstream does.
func redirected(to *url.URL, location string) error {
	if there, err := to.Parse(location); err == nil {
		location = there.String()
	}
	return status.WithoutReason(fmt.Sprintf("Get %q: redirects forbidden", location))
}

// refusal is the kubelet's own message and code for why there is no log, even if the
// kubelet has refused the server itself.
func refusal(answer *http.Response, name string) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reading the kubelet's answer: %w", err))
	}
	text := strings.TrimSpace(string(body))
	switch answer.StatusCode {
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(text)
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(fmt.Errorf("the kubelet answered %s: %s", answer.Status, text))
	}
	refused := apierrors.NewGenericServerResponse(answer.StatusCode, "get", core.Pods.GVR().GroupResource(), name, "", 0, false)
	if text != "" {
		refused.ErrStatus.Message = text
	}
	return refused
}

// logOptions are the valid PodLogOptions for a pod in a query.
func logOptions(pod string, query url.Values) (*corev1.PodLogOptions, error) {
	o, err := readLogOptions(query)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := validateLogOptions(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), pod, errs)
	}
	return o, nil
}

// readLogOptions returns the first of several errors, in upstream's order: that is what it
// answers.
func readLogOptions(query url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{
		Container: query.Get("container"),
		Follow:    request.Flag(query, "follow"), Previous: request.Flag(query, "previous"), Timestamps: request.Flag(query, "timestamps"),
		InsecureSkipTLSVerifyBackend: request.Flag(query, "insecureSkipTLSVerifyBackend"),
	}
	var err error
	if o.SinceSeconds, err = request.Number(query, "sinceSeconds"); err != nil {
		return nil, err
	}
	if query.Has("sinceTime") {
		o.SinceTime = &metav1.Time{}
		if err := o.SinceTime.UnmarshalQueryParameter(query.Get("sinceTime")); err != nil {
			return nil, err
		}
	}
	if o.TailLines, err = request.Number(query, "tailLines"); err != nil {
		return nil, err
	}
	if o.LimitBytes, err = request.Number(query, "limitBytes"); err != nil {
		return nil, err
	}
	if query.Has("stream") {
		o.Stream = new(query.Get("stream"))
	}
	return o, nil
}

func validateLogOptions(o *corev1.PodLogOptions) (errs field.ErrorList) {
	if n := o.TailLines; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *n, "must be greater than or equal to 0"))
	}
	if n := o.LimitBytes; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *n, "must be greater than 0"))
	}
	switch n := o.SinceSeconds; {
	case n != nil && o.SinceTime != nil:
		errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
	case n != nil && *n < 1:
		errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *n, "must be greater than 0"))
	}
	if o.Stream != nil { // as upstream without PodLogsQuerySplitStreams, an alpha gate
		errs = append(errs, field.Forbidden(field.NewPath("stream"), "may not be specified"))
	}
	return errs
}

// logQuery is the query for kubelets.
func logQuery(o *corev1.PodLogOptions) url.Values {
	query := url.Values{}
	for name, on := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if on {
			query.Set(name, "true")
		}
	}
	for name, number := range map[string]*int64{"tailLines": o.TailLines, "limitBytes": o.LimitBytes, "sinceSeconds": o.SinceSeconds} {
		if number != nil {
			query.Set(name, strconv.FormatInt(*number, 10))
		}
	}
	if o.SinceTime != nil {
		query.Set("sinceTime", o.SinceTime.UTC().Format(time.RFC3339))
	}
	return query
}

// chooseContainer is the requested container, or the only one.
func chooseContainer(pod *core.Pod, asked string) (string, error) {
	var containers, inits, debuggers []string
	for i := range pod.Spec.Containers {
		containers = append(containers, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.InitContainers {
		inits = append(inits, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		debuggers = append(debuggers, pod.Spec.EphemeralContainers[i].Name)
	}
	if asked != "" {
		if !slices.Contains(slices.Concat(containers, inits, debuggers), asked) {
			return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", asked, pod.Name))
		}
		return asked, nil
	}
	if preferred := pod.Annotations["kubectl.kubernetes.io/default-container"]; slices.Contains(containers, preferred) {
		return preferred, nil
	}
	if len(containers) == 1 {
		return containers[0], nil
	}
	text := fmt.Sprintf("a container name must be specified for pod %s, choose one of: %v", pod.Name, containers)
	if len(inits) > 0 {
		text += fmt.Sprintf(" or one of the init containers: %v", inits)
	}
	if len(debuggers) > 0 {
		text += fmt.Sprintf(" or one of the ephemeral containers: %v", debuggers)
	}
	return "", apierrors.NewBadRequest(text)
}
