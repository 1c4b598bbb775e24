package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/daemon"
)

const (
	// refreshTick is how often to look for pods that are due.
	refreshTick = 2 * time.Second
	// refreshPeriod is the longest time until a pod's content is looked at again. What is
	// read then may be as old as Objects keeps it for all pods together.
	refreshPeriod = 55 * time.Second
	// refreshRetry is when a refresh that failed is tried again.
	refreshRetry = 10 * time.Second
	// refreshTimeout bounds one pod's refresh.
	refreshTimeout = 30 * time.Second
)

// nextRefresh spreads the refreshes of pods that were started together.
func nextRefresh() time.Duration {
	return refreshPeriod - time.Duration(rand.Int64N(int64(refreshPeriod/4)))
}

// refreshable tells whether the content of any of the pod's volumes may change.
func refreshable(pod *core.Pod) bool {
	return slices.ContainsFunc(usedVolumes(pod), func(v *corev1.Volume) bool { return hasContent(kindOf(v.VolumeSource)) })
}

// sameContent tells whether both pods show the same in their volumes, as far
// as that depends on the pod itself.
func sameContent(a, b *core.Pod) bool {
	return a == b || maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// isAway tells whether err says nothing about the object that was asked for,
// only that the API could not answer now.
func isAway(err error) bool {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return !isDisk(err)
	}
	return answered.Status().Code >= 500 || apierrors.ReasonForError(err) == metav1.StatusReasonTooManyRequests
}

// isDisk tells whether err is about a file that could not be written.
func isDisk(err error) bool {
	var file *fs.PathError
	var link *os.LinkError
	return errors.As(err, &file) || errors.As(err, &link)
}

// Run keeps the contents of mounted volumes up to date until ctx ends. Each pod is refreshed on its own: one that waits
// for a signer delays no other's secrets.
func (m *Manager) Run(ctx context.Context) error {
	ticker := m.config.Clock.NewTicker(refreshTick)
	defer ticker.Stop()
	var refreshes sync.WaitGroup
	defer refreshes.Wait()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		case <-m.wake:
		}
		for _, p := range m.takeDue() {
			refreshes.Go(func() { m.refresh(ctx, p) })
		}
	}
}

// takeDue are the pods whose time has come. They are not due again while they are refreshed.
func (m *Manager) takeDue() []*podVolumes {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.config.Clock.Now()
	var due []*podVolumes
	for _, p := range m.pods {
		if !p.gone && !p.due.IsZero() && !p.due.After(now) {
			p.due = now.Add(refreshTimeout + refreshRetry)
			due = append(due, p)
		}
	}
	return due
}

// refresh updates all contents of one pod. It leaves volumes that were never
// mounted to Mount.
func (m *Manager) refresh(ctx context.Context, p *podVolumes) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if p.take(ctx) != nil {
		return // it is due again soon
	}
	defer p.give()
	m.mu.Lock()
	pod, gone, mounted := p.pod, p.gone, maps.Clone(p.mounted)
	m.mu.Unlock()
	if gone || pod == nil {
		return
	}
	var errs []error
	for i := range pod.Spec.Volumes {
		spec := &pod.Spec.Volumes[i]
		kind := kindOf(spec.VolumeSource)
		v, done := mounted[spec.Name]
		if !done || !hasContent(kind) {
			continue
		}
		if err := m.setUp(ctx, pod, spec, kind, v.path); err != nil {
			errs = append(errs, fmt.Errorf("volume %q: %w", spec.Name, err))
		}
	}
	err := errors.Join(errs...)
	if stale := err != nil; stale != p.stale {
		if p.stale = stale; !stale {
			m.config.Logger.Info("volumes have their newest content again", daemon.PodFields(pod))
		} else {
			m.config.Logger.Warn("volumes keep their old content: no newer content is available",
				daemon.PodFields(pod), zap.Error(err))
		}
	}
	if m.config.Failed != nil && isDisk(err) {
		m.config.Failed(pod, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.pod != pod {
		return // Mount saw a newer pod meanwhile, and has said when it is due
	}
	if p.due = m.config.Clock.Now().Add(nextRefresh()); err != nil {
		p.due = m.config.Clock.Now().Add(refreshRetry)
	}
}
