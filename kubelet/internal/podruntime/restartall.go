package podruntime

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/podactions"
	"kctl/proto/core"
)

// restartAll ends what runs, or forgets what ended. It tells whether there is
// more to do.
func (s *podSync) restartAll(a podactions.Actions) bool {
	var g errgroup.Group
	atOnce, together := int64(0), ending{pace: newPace()}
	for _, kill := range a.Kill {
		g.Go(func() error {
			err := s.killContainer(s.ctx, s.pod, kill, together, &atOnce)
			if err == nil {
				s.refresh(kill.ID.ID)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		s.fail(err)
		return false
	}
	for _, id := range a.Remove {
		s.tellRestartOfAll(id, a.RestartAll)
		if err := s.runtime.RemoveContainer(context.WithoutCancel(s.ctx), id.ID); err != nil && !cri.IsNotFound(err) {
			s.fail(fmt.Errorf("removing container %s: %w", id, err))
			return false
		}
		if id == a.RestartAll.ID {
			s.crashes.Fail(s.key(core.FindContainer(s.pod, a.RestartAll.Name)))
		}
		s.publish(without(id))
	}
	return len(a.Kill)+len(a.Remove) > 0
}
