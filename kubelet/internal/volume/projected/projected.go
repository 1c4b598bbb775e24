package projected

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/configmap"
	"kctl/kubelet/internal/volume/downwardapi"
	"kctl/kubelet/internal/volume/keys"
	"kctl/kubelet/internal/volume/secret"
	"kctl/proto/core"
)

// Objects reads what the sources name.
type Objects interface {
	configmap.Getter
	secret.Getter
	TrustBundles
	PodCertificates
	Token(ctx context.Context, pod *core.Pod, audience string, seconds int64) (string, error)
}

// defaultTokenSeconds is the life of tokens whose source names none.
const defaultTokenSeconds = 60 * 60

// privateMode is for private files that have an owner who can read them.
const privateMode int32 = 0o600

var errUnknown = errors.New("projected source of the kind unknown is not supported")

// Check says that a source is of a kind that is not supported.
func Check(source *corev1.VolumeProjection) error {
	if source.Secret == nil && source.ConfigMap == nil && source.DownwardAPI == nil && source.ServiceAccountToken == nil &&
		source.ClusterTrustBundle == nil && source.PodCertificate == nil {
		return errUnknown
	}
	return nil
}

// Payload is the content of all sources, which are read in parallel. If two
// sources have the same path, the later one wins.
func Payload(ctx context.Context, objects Objects, pod *core.Pod, source *corev1.ProjectedVolumeSource,
	allocatable corev1.ResourceList) (atomic.Payload, error) {
	v := volume{objects: objects, pod: pod, allocatable: allocatable, defaults: keys.NewDefaults(source.DefaultMode, source.DefaultUser)}
	payloads := make([]atomic.Payload, len(source.Sources))
	errs := make([]error, len(source.Sources))
	var group errgroup.Group
	for i := range source.Sources {
		group.Go(func() error {
			payloads[i], errs[i] = v.payload(ctx, &source.Sources[i])
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, all of them
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	whole := atomic.Payload{}
	for _, payload := range payloads {
		maps.Copy(whole, payload)
	}
	return whole, nil
}

// volume is what its sources are read with.
type volume struct {
	objects     Objects
	pod         *core.Pod
	allocatable corev1.ResourceList // of the node, for the downward API
	defaults    keys.Defaults
}

// payload is the content of one source.
func (v volume) payload(ctx context.Context, source *corev1.VolumeProjection) (atomic.Payload, error) {
	objects, pod, d := v.objects, v.pod, v.defaults
	switch {
	case source.ServiceAccountToken != nil:
		return token(ctx, objects, pod, source.ServiceAccountToken, d)
	case source.ConfigMap != nil:
		return configmap.Payload(ctx, objects, pod.Namespace, source.ConfigMap, d)
	case source.Secret != nil:
		return secret.Payload(ctx, objects, pod.Namespace, source.Secret, d)
	case source.ClusterTrustBundle != nil:
		return trustBundle(ctx, objects, source.ClusterTrustBundle, d)
	case source.PodCertificate != nil:
		return podCertificate(ctx, objects, pod, source.PodCertificate, d)
	case source.DownwardAPI != nil:
		return downwardapi.Payload(pod, source.DownwardAPI.Items, v.allocatable, d)
	}
	return nil, errUnknown
}

func token(ctx context.Context, objects Objects, pod *core.Pod, source *corev1.ServiceAccountTokenProjection,
	d keys.Defaults) (atomic.Payload, error) {
	value, err := objects.Token(ctx, pod, source.Audience, ptr.Deref(source.ExpirationSeconds, defaultTokenSeconds))
	if err != nil {
		return nil, err
	}
	return atomic.Payload{source.Path: private(pod, d.File([]byte(value), nil, source.User))}, nil
}

// private is a file that only its user or group may read.
func private(pod *core.Pod, file atomic.File) atomic.File {
	if file.User == nil {
		file.User = commonUser(pod)
	}
	if file.User != nil || pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.FSGroup != nil {
		file.Mode = privateMode
	}
	return file
}

// commonUser is the user that all of the pod's containers run as; nil if they
// differ, or if an image decides.
func commonUser(pod *core.Pod) *int64 {
	var of *int64
	if pod.Spec.SecurityContext != nil {
		of = pod.Spec.SecurityContext.RunAsUser
	}
	var common *int64
	for c := range core.Containers(&pod.Spec) {
		user := of
		if sc := c.SecurityContext; sc != nil {
			user = cmp.Or(sc.RunAsUser, of)
		}
		if user == nil || common != nil && *common != *user {
			return nil
		}
		common = user
	}
	return common
}
