package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"kctl/kubelet/internal/cri"
)

// Checkpointing makes archives of running containers.
type Checkpointing interface {
	CheckpointContainer(ctx context.Context, id, path string, timeout time.Duration) error
}

// checkpoint makes the container runtime write a running container to an archive,
// with its memory (Kubernetes docs, "Kubelet Checkpoint API").
func (s *Server) checkpoint(c *gin.Context) {
	pod, container := s.containerOf(c)
	if pod == nil {
		return
	}
	timeout := uint64(0)
	if text := c.Query("timeout"); text != "" {
		var err error
		if timeout, err = strconv.ParseUint(text, 10, 31); err != nil {
			s.refuse(c, http.StatusBadRequest, fmt.Errorf("cannot parse value of timeout parameter: %q is not a number of seconds", text))
			return
		}
	}
	ctx := c.Request.Context()
	id, err := s.runningContainer(ctx, pod, container)
	if err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
		return
	}
	archive := filepath.Join(s.Checkpoints, fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar",
		pod.Name, pod.Namespace, container, s.Clock.Now().Format(time.RFC3339)))
	if err = os.MkdirAll(s.Checkpoints, 0o700); err == nil { // secrets are in memory, too
		err = s.Runtime.CheckpointContainer(ctx, id, archive, time.Duration(timeout)*time.Second)
	}
	if err != nil {
		if call, ok := errors.AsType[*cri.Error](err); ok {
			err = call.Err // with the runtime's own code, which tells callers that it can't
		}
		s.refuse(c, http.StatusInternalServerError, fmt.Errorf("checkpointing of %s/%s/%s failed (%w)", pod.Namespace, pod.Name, container, err))
		return
	}
	s.answer(c, map[string][]string{"items": {archive}})
}
