package handlers

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// askedOptions is the options object of a request for a stream, as admission plugins
// see it; nil for subresources without one. Each call makes another.
func (c *call) askedOptions() runtime.Object {
	r, subresource, query, path := c.resource, c.subresource, c.gin.Request.URL.Query(), c.gin.Param("path")
	var options runtime.Object
	switch {
	case r == core.Pods && subresource == "exec":
		options = &corev1.PodExecOptions{
			Stdin: request.Flag(query, "stdin"), Stdout: request.Flag(query, "stdout"), Stderr: request.Flag(query, "stderr"),
			TTY:       request.Flag(query, "tty"),
			Container: query.Get("container"), Command: query["command"],
		}
	case r == core.Pods && subresource == "attach":
		options = &corev1.PodAttachOptions{
			Stdin: request.Flag(query, "stdin"), Stdout: request.Flag(query, "stdout"), Stderr: request.Flag(query, "stderr"),
			TTY:       request.Flag(query, "tty"),
			Container: query.Get("container"),
		}
	case r == core.Pods && subresource == "portforward":
		options = &corev1.PodPortForwardOptions{Ports: ports(query["ports"])}
	case r == core.Pods && subresource == "proxy":
		options = &corev1.PodProxyOptions{Path: path}
	case r == core.Nodes && subresource == "proxy":
		options = &corev1.NodeProxyOptions{Path: path}
	case r == core.Services && subresource == "proxy":
		options = &corev1.ServiceProxyOptions{Path: path}
	default:
		return nil
	}
	kinds := map[string]string{
		"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions",
		"proxy": r.Kind + "ProxyOptions",
	}
	options.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kinds[subresource]))
	return options
}

// withConnectOptions returns the request, asking for what admission plugins have made of
// its options. Paths of proxies stay: rights to what is behind them were checked.
func withConnectOptions(r *http.Request, asked, admitted runtime.Object) (*http.Request, error) {
	if equality.Semantic.DeepEqual(asked, admitted) {
		return r, nil
	}
	query := r.URL.Query()
	switch options := admitted.(type) {
	case *corev1.PodExecOptions:
		setStreams(query, options.Stdin, options.Stdout, options.Stderr, options.TTY, options.Container)
		query["command"] = options.Command
	case *corev1.PodAttachOptions:
		setStreams(query, options.Stdin, options.Stdout, options.Stderr, options.TTY, options.Container)
	case *corev1.PodPortForwardOptions:
		query.Del("ports")
		for _, port := range options.Ports {
			query.Add("ports", strconv.Itoa(int(port)))
		}
	default:
		kind := admitted.GetObjectKind().GroupVersionKind().Kind
		return nil, apierrors.NewInternalError(fmt.Errorf("an admission plugin changed the path of a %s, which is not supported", kind))
	}
	changed := r.Clone(r.Context())
	changed.URL.RawQuery = query.Encode()
	return changed, nil
}

func setStreams(query url.Values, stdin, stdout, stderr, tty bool, container string) {
	for name, wanted := range map[string]bool{"stdin": stdin, "stdout": stdout, "stderr": stderr, "tty": tty} {
		query.Set(name, strconv.FormatBool(wanted))
	}
	query.Set("container", container)
}

// ports reads port numbers, several of which may be in one text; the server of the stream
// refuses invalid ones.
func ports(texts []string) []int32 {
	var out []int32
	for _, text := range texts {
		for number := range strings.SplitSeq(text, ",") {
			if port, err := strconv.ParseInt(number, 10, 32); err == nil {
				out = append(out, int32(port))
			}
		}
	}
	return out
}
