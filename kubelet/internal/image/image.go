package image

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/distribution/reference"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/credential"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

const (
	defaultParallelPulls = 8
	initialBackOff       = 10 * time.Second
	maxBackOff           = 300 * time.Second
	// showFailure is how long a container waits as ErrImagePull before it is
	// looked at again, to wait as ImagePullBackOff from then on.
	showFailure = time.Second
)

// Runtime is what the Manager asks of a CRI image service.
type Runtime interface {
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec) (*runtimeapi.Image, error)
	PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string,
		error)
}

// Events receives messages for users in a pod's event list.
type Events interface {
	ContainerEventf(pod *core.Pod, fieldPath, eventType, reason, format string, args ...any)
}

// NodeCredentials has the node's credentials for registries. What it can't obtain is
// reported in the error, besides the result.
type NodeCredentials interface {
	Lookup(ctx context.Context, pod *core.Pod, image string) ([]credential.Credential, error)
}

// Access records with whose credentials images were pulled (see package pullrecords).
type Access interface {
	// MayUse says whether a pod with the passes may use an image that is present.
	MayUse(image, id string, passes func() []credential.Credential) bool
	// RecordIntent notes that an image is about to be pulled; end is called with the pass
	// that succeeded, nil for none, or with an empty id if the pull failed.
	RecordIntent(image string) (end func(id string, by *credential.Credential), err error)
}

// Options are a Manager's parameters.
type Options struct {
	Runtime Runtime
	Events  Events
	Clock   clock.Clock
	Logger  *zap.Logger
	// Parallel bounds the pulls at one time; zero means 8.
	Parallel int
	// Node has credentials besides those of the pods; it may be nil.
	Node NodeCredentials
	// Access says who may use images that are present; nil allows everybody.
	Access Access
	// Asked, if not nil, is called for each request: whether the image was
	// present, and had to be pulled; nil if that was not determined.
	Asked func(policy corev1.PullPolicy, present, pull *bool)
	// Used, if not nil, is called with the id of each image that is handed out,
	// and its request.
	Used func(r Request, id string)
	// Pulled, if not nil, is called for successful pulls with the duration and the
	// image's size.
	Pulled func(took time.Duration, size uint64)
	// Fetched, if not nil, is called with the start and end of each attempt to pull
	// an image of a pod, successful or not.
	Fetched func(pod types.UID, from, to time.Time)
}

// Manager makes sure that images are present. It is safe for concurrent use.
type Manager struct {
	Options
	pulls          chan struct{} // holds one for each pull under way
	failures       *backoff.Keyed[pullKey]
	mu             sync.Mutex
	failureReasons map[pullKey]string // why pulls failed that are held back
}

type pullKey struct {
	pod   types.UID
	image string
}

// New returns a Manager.
func New(o Options) *Manager {
	return &Manager{
		Options:        o,
		pulls:          make(chan struct{}, cmp.Or(o.Parallel, defaultParallelPulls)),
		failureReasons: map[pullKey]string{},
		failures:       backoff.NewKeyed[pullKey](backoff.Policy{Initial: initialBackOff, Max: maxBackOff}, o.Clock),
	}
}

// Request asks for one container's image.
type Request struct {
	Pod       *core.Pod
	FieldPath string // of the container, for events: spec.containers{name}
	Image     string // as the container's spec has it
	Policy    corev1.PullPolicy
	Secrets   func() []*core.Secret // of the pod, for when it is pulled; may be nil
	Sandbox   *runtimeapi.PodSandboxConfig
	Handler   string // the runtime handler that will run it
}

// Present is an image that the runtime has.
type Present struct {
	Ref      string // by which to create containers: the image's id
	Name     string // its first tag, or digest
	Digest   string // its first digest reference, or its id
	UID      *int64 // the user it runs as, if that is a number
	Username string // if it is a name
	Found    bool   // it was present before the request: for TellFound
}

// TellFound writes the event that a container uses an image that was already
// present. Ensure does not write it: it may run many times for a container that
// waits for something else.
func (m *Manager) TellFound(pod *core.Pod, fieldPath, image string) {
	m.Events.ContainerEventf(pod, fieldPath, corev1.EventTypeNormal, "Pulled",
		"Container image %q already present on machine and can be accessed by the pod", image)
}

// Ensure returns once the runtime has the image, or with an *Error.
func (m *Manager) Ensure(ctx context.Context, r Request) (Present, error) {
	present, err := m.ensure(ctx, r)
	if err == nil && m.Used != nil {
		m.Used(r, present.Ref)
	}
	return present, err
}

func (m *Manager) ensure(ctx context.Context, r Request) (Present, error) {
	name, err := withTag(r.Image)
	if err != nil {
		message := fmt.Sprintf("Failed to apply default image tag %q: %v", r.Image, err)
		m.Events.ContainerEventf(r.Pod, r.FieldPath, corev1.EventTypeWarning, "InspectFailed", "%s", message)
		return Present{}, &Error{Reason: ReasonInvalidName, Message: message, RetryAfter: maxBackOff}
	}
	var there, pull *bool
	if m.Asked != nil {
		defer func() { m.Asked(r.Policy, there, pull) }()
	}
	spec := &runtimeapi.ImageSpec{Image: name, RuntimeHandler: r.Handler}
	passes := m.credentialsFor(ctx, r, name)
	switch r.Policy {
	case corev1.PullIfNotPresent, corev1.PullNever, "":
		present, found, err := m.inspect(ctx, r, spec)
		if err != nil {
			return Present{}, err
		}
		there = &found
		if found && m.mayUse(r, present, passes) {
			pull = new(false)
			present.Found = true
			return present, nil
		}
		if r.Policy == corev1.PullNever {
			message := fmt.Sprintf("Container image %q is not present with pull policy of Never", r.Image)
			m.Events.ContainerEventf(r.Pod, r.FieldPath, corev1.EventTypeWarning, ReasonNeverPull, "%s", message)
			return Present{}, &Error{Reason: ReasonNeverPull, Message: message, RetryAfter: initialBackOff}
		}
	case corev1.PullAlways:
	default:
		return Present{}, &Error{Reason: ReasonInspect, Message: fmt.Sprintf("image pull policy %q is not supported", r.Policy)}
	}
	pull = new(true)
	return m.pull(ctx, r, spec, passes)
}

// mayUse tells whether the pod may use a present image. For a pod that may not, the image
// counts as missing.
func (m *Manager) mayUse(r Request, present Present, passes credentialsFunc) bool {
	return m.Access == nil || m.Access.MayUse(r.Image, present.Ref, func() []credential.Credential {
		all, _ := passes()
		return all
	})
}

// inspect asks the runtime whether it has the image.
func (m *Manager) inspect(ctx context.Context, r Request, spec *runtimeapi.ImageSpec) (Present, bool, error) {
	image, err := m.Runtime.ImageStatus(ctx, spec)
	if err != nil && ctx.Err() != nil { // nobody waits for it any more
		return Present{}, false, &Error{Reason: ReasonInspect, Message: ctx.Err().Error(), Err: ctx.Err()}
	}
	if err != nil {
		message := fmt.Sprintf("Failed to inspect image %q: %v", r.Image, err)
		m.Events.ContainerEventf(r.Pod, r.FieldPath, corev1.EventTypeWarning, "InspectFailed", "%s", message)
		return Present{}, false, &Error{Reason: ReasonInspect, Message: message, Err: err}
	}
	if image == nil {
		return Present{}, false, nil
	}
	return present(image), true, nil
}

func present(image *runtimeapi.Image) Present {
	p := Present{Ref: image.GetId(), Digest: image.GetId(), Name: image.GetId(), Username: image.GetUsername()}
	if image.GetUid() != nil {
		p.UID = &image.Uid.Value
	}
	if digests := image.GetRepoDigests(); len(digests) > 0 {
		p.Digest, p.Name = digests[0], digests[0]
	}
	if tags := image.GetRepoTags(); len(tags) > 0 {
		p.Name = tags[0]
	}
	return p
}

// withTag is the reference with the tag latest if it has neither tag nor
// digest, and otherwise as the user wrote it.
func withTag(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	if reference.IsNameOnly(named) {
		return image + ":latest", nil
	}
	return image, nil
}
