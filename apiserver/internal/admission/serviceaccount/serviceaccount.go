package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/informer"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

const (
	// Name is upstream's name.
	Name = "ServiceAccount"

	defaultAccount = "default"
	volumePrefix   = "kube-api-access-"
	mountPath      = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is slightly more than an hour: it tells issuers that a kubelet
	// renews the token, and that the program may not read it again.
	tokenSeconds = int64(60*60 + 7)

	// A new namespace's default account is created by a loop, a moment later.
	attempts      = 10
	retryInterval = 100 * time.Millisecond
)

// Accounts finds service accounts; lookup.Objects does.
type Accounts interface {
	Get(ctx context.Context, namespace, name string) (*core.ServiceAccount, error)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites // updates can add ephemeral containers
	accounts           Accounts
	clock              clock.Clock
}

// New returns the plugin.
func New(accounts Accounts, clock clock.Clock) *Plugin {
	return &Plugin{accounts: accounts, clock: clock}
}

// Admit completes the pod.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" || a.Operation != admission.Create {
		return nil
	}
	if _, mirror := pod.Annotations[core.ConfigMirrorAnnotation]; mirror {
		return refuseForMirror(pod)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultAccount
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := p.accountOf(ctx, a.Namespace, pod)
	if err != nil {
		return err
	}
	if enforcesMountable(account) {
		if err := checkMountable(account, pod); err != nil {
			return err
		}
	}
	if shouldAutomount(account, pod) {
		mountToken(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, account.ImagePullSecrets...)
	}
	return nil
}

// Validate refuses what the pod's account does not allow: webhooks may have
// changed the pod, and ephemeral containers are added later.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok {
		return nil
	}
	only := checkMountable
	switch {
	case a.Operation == admission.Update && a.Subresource == "ephemeralcontainers":
		only = checkMountableEphemeral
	case a.Operation != admission.Create || a.Subresource != "":
		return nil
	default:
		if _, mirror := pod.Annotations[core.ConfigMirrorAnnotation]; mirror {
			return refuseForMirror(pod)
		}
	}
	account, err := p.accountOf(ctx, a.Namespace, pod)
	if err != nil || !enforcesMountable(account) {
		return err
	}
	return only(account, pod)
}

func (p *Plugin) accountOf(ctx context.Context, namespace string, pod *core.Pod) (*core.ServiceAccount, error) {
	account, err := p.findAccount(ctx, namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return nil, fmt.Errorf("error looking up service account %s/%s: %w", namespace, pod.Spec.ServiceAccountName, err)
	}
	return account, nil
}

// refuseForMirror refuses what a mirror pod may not refer to. It has no account that
// could restrict the secrets.
func refuseForMirror(pod *core.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return errors.New("a mirror pod may not reference service accounts")
	}
	if len(informer.PodOf(pod).Secrets) > 0 {
		return errors.New("a mirror pod may not reference secrets")
	}
	for i := range pod.Spec.Volumes {
		if projected := pod.Spec.Volumes[i].Projected; projected != nil && slices.ContainsFunc(projected.Sources, isToken) {
			return errors.New("a mirror pod may not use ServiceAccountToken volume projections")
		}
	}
	return nil
}

func isToken(source corev1.VolumeProjection) bool { return source.ServiceAccountToken != nil }

func (p *Plugin) findAccount(ctx context.Context, namespace, name string) (*core.ServiceAccount, error) {
	for attempt := 1; ; attempt++ {
		account, err := p.accounts.Get(ctx, namespace, name)
		if err == nil {
			return account, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
		if name != defaultAccount || attempt == attempts {
			return nil, accountMissingError{name}
		}
		if err := backoff.Sleep(ctx, p.clock, retryInterval); err != nil {
			return nil, err
		}
	}
}

// accountMissingError is not a status error: a pod that can't have its account is
// forbidden, rather than not found.
type accountMissingError struct{ name string }

func (m accountMissingError) Error() string {
	return fmt.Sprintf("serviceaccount %q not found", m.name)
}

func shouldAutomount(account *core.ServiceAccount, pod *core.Pod) bool {
	switch {
	case pod.Spec.AutomountServiceAccountToken != nil:
		return *pod.Spec.AutomountServiceAccountToken
	case account.AutomountServiceAccountToken != nil:
		return *account.AutomountServiceAccountToken
	}
	return true
}

// mountToken mounts the token in every container that mounts nothing else at
// that path.
func mountToken(pod *core.Pod) {
	at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, volumePrefix) })
	exists := at >= 0
	name := volumePrefix + rand.String(5)
	if exists {
		name = pod.Spec.Volumes[at].Name
	}
	mounted := false
	for c := range core.Containers(&pod.Spec) {
		if !hasMount(c) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: mountPath})
			mounted = true
		}
	}
	if mounted && !exists {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: tokenVolume()}})
	}
}

func hasMount(c *core.Container) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mountPath })
}

// tokenVolume has what a program needs to reach the API: a token, the CA, and
// its namespace.
func tokenVolume() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{
		DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(tokenSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: core.RootCAConfigMap},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}
}
