package source

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
	"kctl/proto/quantity"
	"kctl/proto/yamlsize"
)

// maxManifest bounds a manifest, as upstream does: what is larger is not a pod.
const maxManifest = 10 << 20

// maxTokens bounds the braces, names and values in a manifest. A pod has some hundreds
// of them. An empty item of a list is two bytes long, and two kilobytes as a Pod.
const maxTokens = 200_000

func readManifest(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("manifest is larger than %d bytes", maxManifest)
	}
	return data, nil
}

// podsOf reads the pods of a manifest, which are this node's.
func podsOf(data []byte, o origin) ([]*core.Pod, error) {
	pods, err := decodePods(data)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if err := complete(pod, o); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

// decodePods reads a Pod or a PodList, in YAML or JSON, strictly.
func decodePods(data []byte) ([]*core.Pod, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("manifest is empty")
	}
	if !json.Valid(data) { // else YAML's parser would take a hundred times the memory
		var err error
		if data, err = fromYAML(data); err != nil {
			return nil, err
		}
	}
	if err := checkTokens(data); err != nil {
		return nil, err
	}
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("manifest is not an object: %w", err)
	}
	if kind.APIVersion != "v1" {
		return nil, fmt.Errorf("apiVersion %q is not supported in manifests: expected v1", kind.APIVersion)
	}
	switch kind.Kind {
	case "Pod":
		pod := &core.Pod{}
		return []*core.Pod{pod}, decodeStrict(data, pod)
	case "PodList":
		var list corev1.PodList
		if err := decodeStrict(data, &list); err != nil {
			return nil, err
		}
		pods := make([]*core.Pod, len(list.Items))
		for i := range list.Items {
			pods[i] = &list.Items[i]
		}
		return pods, nil
	default:
		return nil, fmt.Errorf("kind %q is not supported in manifests: expected Pod or PodList", kind.Kind)
	}
}

// fromYAML converts a manifest to JSON, unless one of them would be much larger than manifests are.
func fromYAML(data []byte) ([]byte, error) {
	parts := 0
	for _, separator := range separators {
		if parts += bytes.Count(data, []byte(separator)); parts > maxTokens {
			return nil, fmt.Errorf("manifest has more than %d lines, names and values", maxTokens)
		}
	}
	if err := yamlsize.Check(data, maxManifest); err != nil {
		return nil, fmt.Errorf("manifest is neither YAML nor JSON: %w", err)
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("manifest is neither YAML nor JSON: %w", err)
	}
	return text, nil
}

// separators are what is between names and values in YAML, one of them at least: its line
// breaks, and what begins and divides lists and mappings within a line.
var separators = []string{"\n", "\r", "\u0085", "\u2028", "\u2029", ",", "[", "{"}

// checkTokens refuses JSON of more than maxTokens.
func checkTokens(data []byte) error {
	tokens := json.NewDecoder(bytes.NewReader(data))
	for range maxTokens {
		if _, err := tokens.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
	}
	return fmt.Errorf("manifest has more than %d names and values", maxTokens)
}

// unread is the warning about a manifest with several documents: as upstream's kubelet,
// this one reads the first.
const unread = "only the first of the manifest's documents is read"

// hasUnread tells whether several of a manifest's documents have any content.
func hasUnread(data []byte) bool {
	documents, content := 0, false
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, " \t\r\n")
		if rest, begins := bytes.CutPrefix(line, []byte("---")); begins && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			line, content = rest, false
		} else if string(line) == "..." {
			line, content = nil, false
		}
		line = bytes.TrimLeft(line, " \t")
		if !content && len(line) > 0 && line[0] != '#' && line[0] != '%' { // a comment, a directive (%YAML)
			content = true
			documents++
		}
	}
	return documents > 1
}

func decodeStrict(data []byte, into any) error {
	// With a huge quantity the kubelet would compute for hours, and care for no pod meanwhile.
	if err := quantity.Check(data, into); err != nil {
		return err
	}
	if err := core.DecodeStrict(data, into); err != nil {
		return fmt.Errorf("decode manifest: %w", err)
	}
	return nil
}

// origin is where a static pod was read; it is part of its identity.
type origin struct {
	source   string // core.FileSource or core.HTTPSource
	location string // path or URL
	nodeName string
}

// complete turns a manifest into a pod of this node: named after it, with a
// UID made from its content and origin, so that a changed manifest is another
// pod, and with the defaults that the API server gives to pods of its own.
func complete(pod *core.Pod, o origin) error {
	if pod.Name == "" {
		return errors.New("metadata.name: a pod in a manifest needs a name")
	}
	setDefaults(&pod.Spec) // before the UID: a default that is spelled out makes no other pod
	if pod.UID == "" {
		uid, err := manifestUID(pod, o)
		if err != nil {
			return err
		}
		pod.UID = uid
	}
	if len(pod.UID) > maxUID {
		return fmt.Errorf("metadata.uid: has %d bytes, and may have %d", len(pod.UID), maxUID)
	}
	if problems := path.IsValidPathSegmentName(string(pod.UID)); len(problems) > 0 { // directories are named by it
		return fmt.Errorf("metadata.uid: %q: %s", pod.UID, strings.Join(problems, "; "))
	}
	pod.Name += "-" + strings.ToLower(o.nodeName)
	if pod.Namespace == "" {
		pod.Namespace = core.NamespaceDefault
	}
	if problems := validation.IsDNS1123Subdomain(pod.Name); len(problems) > 0 {
		return fmt.Errorf("metadata.name: %q: %s", pod.Name, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Label(pod.Namespace); len(problems) > 0 {
		return fmt.Errorf("metadata.namespace: %q: %s", pod.Namespace, strings.Join(problems, "; "))
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[core.ConfigHashAnnotation] = string(pod.UID)
	pod.Spec.NodeName = o.nodeName
	pod.Status = core.PodStatus{Phase: corev1.PodPending}
	// A static pod stays whatever taints its node has, because nobody could move it.
	pod.Spec.Tolerations = append(pod.Spec.Tolerations,
		corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	return validateStatic(pod)
}

// maxUID bounds a UID of a manifest's own: names of directories and of control groups have it
// in them, and the runtime's sandboxes are found again by it.
const maxUID = 128

func manifestUID(pod *core.Pod, o origin) (types.UID, error) {
	data, err := json.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("hash manifest: %w", err)
	}
	h := md5.New()
	h.Write(data)
	if o.source == core.FileSource {
		fmt.Fprintf(h, "host:%sfile:%s", o.nodeName, o.location)
	} else {
		fmt.Fprintf(h, "url:%s", o.location)
	}
	return types.UID(hex.EncodeToString(h.Sum(nil))), nil
}

// validateStatic refuses what a pod without an object in the API can't have,
// and what is not a valid pod at all.
func validateStatic(pod *core.Pod) error {
	switch spec := &pod.Spec; {
	case spec.ServiceAccountName != "", spec.DeprecatedServiceAccount != "":
		return errors.New("spec.serviceAccountName: static pods may not reference service accounts")
	case len(spec.ImagePullSecrets) > 0 || len(spec.ResourceClaims) > 0:
		return errors.New("static pods may not reference objects of the API (imagePullSecrets, resourceClaims)")
	case len(spec.EphemeralContainers) > 0:
		return errors.New("spec.ephemeralContainers: only pods that exist can be given such containers")
	case len(spec.Containers) == 0:
		return errors.New("spec.containers: a pod needs at least one container")
	}
	if err := errors.Join(
		oneOf("spec.restartPolicy", pod.Spec.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever),
		oneOf("spec.dnsPolicy", pod.Spec.DNSPolicy, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone),
	); err != nil {
		return err
	}
	volumes := map[string]bool{}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if err := validateName("volume", v.Name, volumes); err != nil {
			return err
		}
		if refersToAPI(v) {
			return fmt.Errorf("spec.volumes[%s]: static pods may not reference objects of the API", v.Name)
		}
	}
	containers := map[string]bool{}
	for c := range core.Containers(&pod.Spec) {
		if err := validateName("container", c.Name, containers); err != nil {
			return err
		}
		if err := validateContainer(c, volumes); err != nil {
			return fmt.Errorf("container %q: %w", c.Name, err)
		}
	}
	return nil
}

// validateName checks a name by which directories are named, and that it is not
// taken; it adds it to those that are.
func validateName(of, name string, taken map[string]bool) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s name %q: %s", of, name, strings.Join(problems, "; "))
	}
	if taken[name] {
		return fmt.Errorf("%s name %q is duplicated", of, name)
	}
	taken[name] = true
	return nil
}

// oneOf refuses a value that nobody knows. One that is misspelled (always) would be taken for
// another.
func oneOf[T ~string](where string, value T, known ...T) error {
	if slices.Contains(known, value) {
		return nil
	}
	return field.NotSupported(field.NewPath(where), value, known)
}

func validateContainer(c *core.Container, volumes map[string]bool) error {
	if c.Image == "" {
		return errors.New("image is required")
	}
	policy := ptr.Deref(c.RestartPolicy, corev1.ContainerRestartPolicyAlways)
	if err := errors.Join(
		oneOf("restartPolicy", policy, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure,
			corev1.ContainerRestartPolicyNever),
		oneOf("imagePullPolicy", c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever),
		oneOf("terminationMessagePolicy", c.TerminationMessagePolicy, corev1.TerminationMessageReadFile,
			corev1.TerminationMessageFallbackToLogsOnError),
	); err != nil {
		return err
	}
	for _, port := range c.Ports {
		if err := oneOf("ports.protocol", port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP); err != nil {
			return err
		}
	}
	for _, mount := range c.VolumeMounts {
		if !volumes[mount.Name] {
			return field.NotFound(field.NewPath("volumeMounts", "name"), mount.Name)
		}
	}
	for _, e := range c.EnvFrom {
		if e.SecretRef != nil || e.ConfigMapRef != nil {
			return errors.New("static pods may not reference objects of the API (envFrom)")
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && (e.ValueFrom.SecretKeyRef != nil || e.ValueFrom.ConfigMapKeyRef != nil) {
			return fmt.Errorf("static pods may not reference objects of the API (env %s)", e.Name)
		}
	}
	return nil
}

// refersToAPI says that a volume needs something from the API.
func refersToAPI(v *corev1.Volume) bool {
	switch {
	case v.Secret != nil, v.ConfigMap != nil, v.PersistentVolumeClaim != nil, v.CSI != nil, v.Ephemeral != nil:
		return true
	case v.Projected == nil:
		return false
	}
	return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.DownwardAPI == nil })
}
