package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/logs"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// containerLogs answers with a container's log.
func (s *Server) containerLogs(c *gin.Context) {
	pod, container := s.containerOf(c)
	if pod == nil {
		return
	}
	options, previous, err := s.logOptions(c.Request.URL.Query())
	if err != nil {
		code := http.StatusUnprocessableEntity
		if errors.Is(err, errUnreadable) {
			code = http.StatusBadRequest
		}
		s.refuse(c, code, err)
		return
	}
	status := s.status(pod)
	id, err := loggedContainer(pod.Name, container, &status, previous)
	if err != nil {
		s.refuse(c, http.StatusBadRequest, err)
		return
	}
	log, err := s.openLog(c.Request.Context(), id)
	if err != nil {
		s.refuse(c, http.StatusBadRequest, err)
		return
	}
	defer log.Close()
	options.Running = func(ctx context.Context) (bool, error) { return s.isAlive(ctx, id) }
	options.Flush = c.Writer.Flush
	c.Header("Content-Type", "text/plain")
	c.Writer.WriteHeaderNow()
	c.Writer.Flush()
	if err := log.Read(c.Request.Context(), c.Writer, options); err != nil && c.Request.Context().Err() == nil {
		s.Logger.Warn("a container's log was sent in part only",
			daemon.PodFields(pod), zap.String("container", container), zap.Error(err))
	}
}

func (s *Server) openLog(ctx context.Context, id string) (*logs.Log, error) {
	status, err := s.Runtime.ContainerStatus(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("unable to retrieve container logs for %s: %s", id, cri.Message(err))
	}
	if status.GetLogPath() == "" {
		return nil, fmt.Errorf("unable to retrieve container logs for %s: the runtime keeps none", id)
	}
	return logs.Open(status.GetLogPath())
}

// isAlive tells whether the container may still write something.
func (s *Server) isAlive(ctx context.Context, id string) (bool, error) {
	status, err := s.Runtime.ContainerStatus(ctx, id)
	if cri.IsNotFound(err) {
		return false, nil
	}
	if cri.IsUnavailable(err) {
		return true, nil // the runtime is being restarted; the container is not
	}
	if err != nil {
		return false, err
	}
	return status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING ||
		status.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED, nil
}

// errUnreadable is that of a parameter that can't be read, others are about what was read.
var errUnreadable = errors.New("unable to decode query")

// logOptions reads the query, which is a PodLogOptions of the API. As upstream's, it may also
// name the number of lines as it was named before, by tail.
func (s *Server) logOptions(query url.Values) (o logs.Options, previous bool, err error) {
	if tail := query.Get("tail"); tail == "all" {
		query.Del("tailLines")
	} else if tail != "" {
		query.Set("tailLines", tail)
	}
	o = logs.Options{
		Follow:     isSet(query, "follow"),
		Timestamps: isSet(query, "timestamps"),
		Watches:    &s.logWatches,
		Clock:      s.Clock,
	}
	if o.TailLines, err = count(query, "tailLines", 0); err != nil {
		return o, false, err
	}
	if o.LimitBytes, err = count(query, "limitBytes", 1); err != nil {
		return o, false, err
	}
	seconds, err := count(query, "sinceSeconds", 1)
	if err != nil {
		return o, false, err
	}
	since := query.Get("sinceTime")
	switch {
	case seconds != nil && since != "":
		return o, false, errors.New("at most one of sinceTime or sinceSeconds may be specified")
	case seconds != nil:
		o.Since = s.Clock.Now().Add(-core.Seconds(*seconds))
	case since != "":
		if o.Since, err = time.Parse(time.RFC3339, since); err != nil {
			return o, false, fmt.Errorf("%w: sinceTime: %w", errUnreadable, err)
		}
	}
	switch stream := query.Get("stream"); stream {
	case "", "All":
	case "Stdout", "Stderr":
		if o.TailLines != nil {
			return o, false, errors.New("tailLines can't be used with a single stream")
		}
		o.Stream = map[string]string{"Stdout": "stdout", "Stderr": "stderr"}[stream]
	default:
		return o, false, fmt.Errorf("stream: %q is not one of All, Stdout, Stderr", stream)
	}
	return o, isSet(query, "previous"), nil
}

// isSet reads a flag as the API server does: it is set without a value, too (?follow).
func isSet(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && !strings.EqualFold(value, "false")
}

// count reads a number of at least the given least; nil if there is none.
func count(query url.Values, name string, least int64) (*int64, error) {
	if !query.Has(name) {
		return nil, nil
	}
	n, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %q is not a number", errUnreadable, name, query.Get(name))
	}
	if n < least {
		return nil, fmt.Errorf("%s: must be greater than or equal to %d", name, least)
	}
	return &n, nil
}

// loggedContainer is the id of the container, dead or alive, whose log is asked
// for, or why there is none. Users read these errors.
func loggedContainer(pod, container string, status *core.PodStatus, previous bool) (string, error) {
	found := containerStatus(status, container)
	if found == nil {
		return "", fmt.Errorf("container %q in pod %q is not available", container, pod)
	}
	last := ""
	if t := found.LastTerminationState.Terminated; t != nil {
		last = t.ContainerID
	}
	id := ""
	switch state := found.State; {
	case previous:
		if last == "" {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
		}
		id = last
	case state.Running != nil:
		id = found.ContainerID
	case state.Terminated != nil || last != "":
		// For a container that was not started again, its predecessor's log is shown.
		if id = last; state.Terminated != nil && state.Terminated.ContainerID != "" {
			id = state.Terminated.ContainerID
		}
		if id == "" {
			return "", fmt.Errorf("container %q in pod %q is terminated", container, pod)
		}
	default:
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod, whyWaiting(found))
	}
	parsed, err := runtimestate.ParseContainerID(id)
	return parsed.ID, err
}

func whyWaiting(status *core.ContainerStatus) string {
	if status.State.Waiting == nil {
		return "no logs available yet"
	}
	switch reason := status.State.Waiting.Reason; reason {
	case image.ReasonErrPull:
		return "image can't be pulled"
	case image.ReasonPullBackOff:
		return "trying and failing to pull image"
	default:
		return reason
	}
}

func containerStatus(status *core.PodStatus, name string) *core.ContainerStatus {
	for c := range core.AllContainerStatuses(status) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
