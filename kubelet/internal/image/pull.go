package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/credential"
	"kctl/kubelet/internal/cri"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// pull fetches the image, unless its last failure is too recent.
func (m *Manager) pull(ctx context.Context, r Request, spec *runtimeapi.ImageSpec, passes credentialsFunc) (Present, error) {
	key := pullKey{pod: r.Pod.UID, image: spec.GetImage()}
	if left := m.failures.Remaining(key); left > 0 {
		return Present{}, m.backOff(r, key, left)
	}
	asked := m.Clock.Now()
	select {
	case m.pulls <- struct{}{}:
		defer func() { <-m.pulls }()
	case <-ctx.Done():
		return Present{}, &Error{Reason: ReasonErrPull, Message: ctx.Err().Error(), Err: ctx.Err()}
	}
	m.Events.ContainerEventf(r.Pod, r.FieldPath, corev1.EventTypeNormal, "Pulling", "Pulling image %q", r.Image)
	began := m.Clock.Now()
	end, err := m.recordIntent(r.Image)
	if err != nil {
		return Present{}, m.failed(r, key, err)
	}
	id, by := "", (*credential.Credential)(nil)
	defer func() { end(id, by) }()
	by, err = m.fetch(ctx, r, spec, passes)
	if m.Fetched != nil {
		m.Fetched(r.Pod.UID, began, m.Clock.Now())
	}
	if err != nil {
		if ctx.Err() != nil { // the pod is to end: nobody's failure
			return Present{}, &Error{Reason: ReasonErrPull, Message: ctx.Err().Error(), Err: ctx.Err()}
		}
		return Present{}, m.failed(r, key, err)
	}
	m.failures.Reset(key)
	m.setFailureReason(key, "")
	image, err := m.pulledImage(ctx, r, spec)
	if err != nil {
		return Present{}, err
	}
	id = image.GetId()
	done := m.Clock.Now()
	if m.Pulled != nil {
		m.Pulled(done.Sub(began), image.GetSize())
	}
	m.Events.ContainerEventf(r.Pod, r.FieldPath, corev1.EventTypeNormal, "Pulled",
		"Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.",
		r.Image, done.Sub(began).Truncate(time.Millisecond), done.Sub(asked).Truncate(time.Millisecond), image.GetSize())
	return present(image), nil
}

// backOff tells the user that the image is pulled again later.
func (m *Manager) backOff(r Request, key pullKey, left time.Duration) *Error {
	message := fmt.Sprintf("Back-off pulling image %q", r.Image)
	m.Events.ContainerEventf(r.Pod, r.FieldPath, corev1.EventTypeNormal, "BackOff", "%s", message)
	return &Error{Reason: ReasonPullBackOff, Message: m.withFailureReason(key, message), RetryAfter: left}
}

// recordIntent notes that an image is about to be pulled. end notes how that ended, and
// by which credential.
func (m *Manager) recordIntent(image string) (end func(id string, by *credential.Credential), err error) {
	if m.Access == nil {
		return func(string, *credential.Credential) {}, nil
	}
	if end, err = m.Access.RecordIntent(image); err != nil {
		return nil, fmt.Errorf("noting that the image is pulled: %w", err)
	}
	return end, nil
}

// pulledImage is the image that the runtime has just pulled.
func (m *Manager) pulledImage(ctx context.Context, r Request, spec *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	image, err := m.Runtime.ImageStatus(ctx, spec)
	if err == nil && image == nil {
		err = errors.New("the runtime does not have it after pulling it")
	}
	if err != nil {
		return nil, &Error{Reason: ReasonInspect, Message: fmt.Sprintf("Failed to inspect image %q: %v", r.Image, err), Err: err}
	}
	return image, nil
}

// credentialsFunc are the credentials that fit an image. The error is about those that
// could not be had; the others may be enough.
type credentialsFunc func() ([]credential.Credential, error)

// credentialsFor asks for the credentials when they are needed first, once for a request:
// a plugin that has to be asked for them may take a while.
func (m *Manager) credentialsFor(ctx context.Context, r Request, name string) credentialsFunc {
	return sync.OnceValues(func() ([]credential.Credential, error) {
		all, missing := m.credentials(ctx, r, name)
		if missing != nil {
			m.Logger.Warn("credentials for an image can not be had", daemon.PodFields(r.Pod), zap.Error(missing))
		}
		return all, missing
	})
}

// credentials are those of the pod's secrets and of the node.
func (m *Manager) credentials(ctx context.Context, r Request, name string) ([]credential.Credential, error) {
	var secrets []*core.Secret
	if r.Secrets != nil {
		secrets = r.Secrets()
	}
	all, err := credential.FromSecrets(name, secrets)
	if m.Node == nil {
		return all, err
	}
	nodes, nodeErr := m.Node.Lookup(ctx, r.Pod, name)
	return append(all, nodes...), errors.Join(err, nodeErr)
}

// fetch tries the fitting credentials in turn until a pull succeeds, and
// returns the accepted one; without any, it pulls anonymously.
func (m *Manager) fetch(ctx context.Context, r Request, spec *runtimeapi.ImageSpec,
	passes credentialsFunc) (*credential.Credential, error) {
	all, missing := passes()
	if len(all) == 0 {
		all = []credential.Credential{{}}
	}
	var failures []error
	for _, pass := range all {
		_, err := m.Runtime.PullImage(ctx, spec, pass.Auth, r.Sandbox)
		if err == nil {
			return &pass, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(append(failures, missing)...) // what is missing may be why
}

// failed reports a failed pull to the user and counts it. The caller need not
// report the failure as a cause: its back-off is kept here.
func (m *Manager) failed(r Request, key pullKey, err error) *Error {
	message := err.Error()
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) == 1 {
		message = cri.MessageWithCode(joined.Unwrap()[0])
	}
	m.Events.ContainerEventf(r.Pod, r.FieldPath, corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", r.Image, message)
	reason := ReasonErrPull
	for _, known := range []string{ReasonRegistryUnavailable, ReasonSignature} {
		if strings.HasPrefix(message, known) { // by which runtimes tell these, says the CRI
			reason = known
		}
	}
	delay := m.failures.Fail(key)
	m.setFailureReason(key, reason+": "+message)
	return &Error{
		Reason:     reason,
		Message:    fmt.Sprintf("failed to pull image %q: %s", r.Image, message),
		RetryAfter: min(delay, showFailure),
	}
}

// setFailureReason records why a pull failed, or forgets that if it succeeded, and drops
// expired records.
func (m *Manager) setFailureReason(key pullKey, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.failureReasons {
		if m.failures.Delay(other) == 0 {
			delete(m.failureReasons, other)
		}
	}
	if why != "" {
		m.failureReasons[key] = why
	}
}

// withFailureReason adds the reason of the last failed pull to a message.
func (m *Manager) withFailureReason(key pullKey, message string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why := m.failureReasons[key]; why != "" {
		return message + ": " + why
	}
	return message
}
