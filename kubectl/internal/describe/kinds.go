package describe

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
)

// kinds are those with a layout of their own besides the ones that have a
// function each.
var kinds = map[string]func(*page, *unstructured.Unstructured, []core.Event) error{
	"v1/ConfigMap":             decodeAnd((*page).configMap),
	"v1/ServiceAccount":        decodeAnd((*page).serviceAccount),
	"v1/Service":               decodeAnd((*page).service),
	"v1/ResourceQuota":         decodeAnd((*page).quota),
	"v1/LimitRange":            decodeAnd((*page).limitRange),
	"v1/ReplicationController": decodeAnd((*page).replicationController),
	"v1/Endpoints":             decodeAnd((*page).endpointsOf),
	"v1/PersistentVolume":      decodeAnd((*page).persistentVolume),
	"v1/PersistentVolumeClaim": decodeAnd((*page).claim),

	"apps/v1/Deployment":  (*page).deployment,
	"apps/v1/StatefulSet": decodeAnd((*page).statefulSet),
	"apps/v1/DaemonSet":   decodeAnd((*page).daemonSet),
	"apps/v1/ReplicaSet":  decodeAnd((*page).replicaSet),
	"batch/v1/Job":        decodeAnd((*page).job),
	"batch/v1/CronJob":    decodeAnd((*page).cronJob),

	"autoscaling/v2/HorizontalPodAutoscaler":           decodeAnd((*page).horizontalAutoscaler),
	"certificates.k8s.io/v1/CertificateSigningRequest": decodeAnd((*page).signingRequestOf),
	"discovery.k8s.io/v1/EndpointSlice":                decodeAnd((*page).endpointSlice),
	"networking.k8s.io/v1/Ingress":                     decodeAnd((*page).ingressOf),
	"networking.k8s.io/v1/IngressClass":                decodeAnd((*page).ingressClassOf),
	"networking.k8s.io/v1/NetworkPolicy":               decodeAnd((*page).networkPolicyOf),
	"policy/v1/PodDisruptionBudget":                    decodeAnd((*page).budget),
	"scheduling.k8s.io/v1/PriorityClass":               decodeAnd((*page).priorityClass),
	"storage.k8s.io/v1/StorageClass":                   decodeAnd((*page).storageClassOf),
	"storage.k8s.io/v1/CSINode":                        decodeAnd((*page).storageNodeOf),
	"rbac.authorization.k8s.io/v1/Role":                decodeAnd((*page).role),
	"rbac.authorization.k8s.io/v1/ClusterRole":         decodeAnd((*page).role),
	"rbac.authorization.k8s.io/v1/RoleBinding":         decodeAnd((*page).binding),
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding":  decodeAnd((*page).binding),
}

// Known describes an object of a kind that has a layout of its own, and tells
// whether it has.
func Known(w io.Writer, object *unstructured.Unstructured, around Around, events []core.Event, now time.Time) (bool, error) {
	write, ok := kinds[object.GetAPIVersion()+"/"+object.GetKind()]
	if !ok {
		return false, nil
	}
	p := newPage(w, now)
	p.around = around
	if err := write(p, object, events); err != nil {
		return true, err
	}
	return true, p.done()
}

// decodeAnd decodes the object for a layout that needs its Go type.
func decodeAnd[T any](write func(*page, *T, []core.Event)) func(*page, *unstructured.Unstructured, []core.Event) error {
	return func(p *page, object *unstructured.Unstructured, events []core.Event) error {
		decoded := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, decoded); err != nil {
			return fmt.Errorf("decode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		write(p, decoded, events)
		return nil
	}
}

func (p *page) names(meta *metav1.ObjectMeta) {
	p.line("Name", "%s", meta.Name)
	if meta.Namespace != "" {
		p.line("Namespace", "%s", meta.Namespace)
	}
}

func (p *page) marks(meta *metav1.ObjectMeta) {
	p.pairs("Labels", meta.Labels)
	p.annotations(meta.Annotations)
}

func (p *page) serviceAccount(s *core.ServiceAccount, events []core.Event) {
	p.names(&s.ObjectMeta)
	p.marks(&s.ObjectMeta)
	var pull []string
	for _, each := range s.ImagePullSecrets {
		pull = append(pull, each.Name)
	}
	p.line("Image pull secrets", "%s", cmp.Or(strings.Join(pull, "\n\t"), "<none>"))
	p.events(events)
}

func (p *page) service(s *corev1.Service, events []core.Event) {
	p.names(&s.ObjectMeta)
	p.marks(&s.ObjectMeta)
	p.line("Selector", "%s", labels.FormatLabels(s.Spec.Selector))
	p.line("Type", "%s", s.Spec.Type)
	if s.Spec.IPFamilyPolicy != nil {
		p.line("IP Family Policy", "%s", *s.Spec.IPFamilyPolicy)
	}
	var families []string
	for _, family := range s.Spec.IPFamilies {
		families = append(families, string(family))
	}
	p.line("IP Families", "%s", cmp.Or(strings.Join(families, ","), "<none>"))
	p.line("IP", "%s", s.Spec.ClusterIP)
	p.line("IPs", "%s", cmp.Or(strings.Join(s.Spec.ClusterIPs, ","), "<none>"))
	p.serviceOutside(s)
	p.servicePorts(s)
	p.line("Session Affinity", "%s", s.Spec.SessionAffinity)
	p.serviceTraffic(&s.Spec)
	p.events(events)
}

// serviceOutside says where a service is reached from outside the cluster, or what is
// outside that it stands for.
func (p *page) serviceOutside(s *corev1.Service) {
	if len(s.Spec.ExternalIPs) > 0 {
		p.line("External IPs", "%s", strings.Join(s.Spec.ExternalIPs, ","))
	}
	if s.Spec.LoadBalancerIP != "" {
		p.line("Desired LoadBalancer IP", "%s", s.Spec.LoadBalancerIP)
	}
	if s.Spec.ExternalName != "" {
		p.line("External Name", "%s", s.Spec.ExternalName)
	}
	var balancers []string
	for _, at := range s.Status.LoadBalancer.Ingress {
		address := cmp.Or(at.IP, at.Hostname)
		if at.IP != "" && at.IPMode != nil {
			address += fmt.Sprintf(" (%s)", *at.IPMode)
		}
		balancers = append(balancers, address)
	}
	if len(balancers) > 0 {
		p.line("LoadBalancer Ingress", "%s", strings.Join(balancers, ", "))
	}
}

// servicePorts says of each port where it leads.
func (p *page) servicePorts(s *corev1.Service) {
	for _, port := range s.Spec.Ports {
		p.line("Port", "%s\t%d/%s", cmp.Or(port.Name, "<unset>"), port.Port, port.Protocol)
		p.line("TargetPort", "%s/%s", port.TargetPort.String(), port.Protocol)
		if port.AppProtocol != nil {
			p.line("AppProtocol", "%s", *port.AppProtocol)
		}
		if port.NodePort != 0 {
			p.line("NodePort", "%s\t%d/%s", cmp.Or(port.Name, "<unset>"), port.NodePort, port.Protocol)
		}
		p.line("Endpoints", "%s", p.around.Endpoints.Of(port.Name))
	}
}

// serviceTraffic says how connections to a service are distributed, and from where they may come.
func (p *page) serviceTraffic(spec *corev1.ServiceSpec) {
	if spec.ExternalTrafficPolicy != "" {
		p.line("External Traffic Policy", "%s", spec.ExternalTrafficPolicy)
	}
	if spec.InternalTrafficPolicy != nil {
		p.line("Internal Traffic Policy", "%s", *spec.InternalTrafficPolicy)
	}
	if spec.HealthCheckNodePort != 0 {
		p.line("HealthCheck NodePort", "%d", spec.HealthCheckNodePort)
	}
	if len(spec.LoadBalancerSourceRanges) > 0 {
		p.line("LoadBalancer Source Ranges", "%s", strings.Join(spec.LoadBalancerSourceRanges, ","))
	}
	if spec.TrafficDistribution != nil {
		p.line("Traffic Distribution", "%s", *spec.TrafficDistribution)
	}
}

func (p *page) quota(q *corev1.ResourceQuota, _ []core.Event) {
	p.names(&q.ObjectMeta)
	p.scopes(q)
	p.underlined("", "Resource\tUsed\tHard")
	p.usage(q)
}

func (p *page) scopes(q *corev1.ResourceQuota) {
	if len(q.Spec.Scopes) == 0 {
		return
	}
	var scopes []string
	for _, scope := range q.Spec.Scopes {
		scopes = append(scopes, string(scope))
	}
	slices.Sort(scopes)
	p.line("Scopes", "%s", strings.Join(scopes, ", "))
}

// usage is a quota's usage, with a row for each resource.
func (p *page) usage(q *corev1.ResourceQuota) {
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		p.text("%s\t%s\t%s", name, used.String(), hard.String())
	}
}

func (p *page) budget(b *policyv1.PodDisruptionBudget, events []core.Event) {
	p.names(&b.ObjectMeta)
	if b.Spec.MinAvailable != nil {
		p.line("Min available", "%s", b.Spec.MinAvailable.String())
	} else if b.Spec.MaxUnavailable != nil {
		p.line("Max unavailable", "%s", b.Spec.MaxUnavailable.String())
	}
	selector := "<unset>"
	if b.Spec.Selector != nil {
		selector = metav1.FormatLabelSelector(b.Spec.Selector)
	}
	p.line("Selector", "%s", selector)
	p.head("Status")
	p.under(func() {
		p.under(func() {
			p.line("Allowed disruptions", "%d", b.Status.DisruptionsAllowed)
			p.line("Current", "%d", b.Status.CurrentHealthy)
			p.line("Desired", "%d", b.Status.DesiredHealthy)
			p.line("Total", "%d", b.Status.ExpectedPods)
		})
	})
	p.events(events)
}

func (p *page) priorityClass(c *schedulingv1.PriorityClass, events []core.Event) {
	p.line("Name", "%s", c.Name)
	p.line("Value", "%d", c.Value)
	p.line("GlobalDefault", "%t", c.GlobalDefault)
	if c.PreemptionPolicy != nil {
		p.line("PreemptionPolicy", "%s", *c.PreemptionPolicy)
	}
	p.line("Description", "%s", c.Description)
	p.line("Annotations", "%s", labels.FormatLabels(c.Annotations))
	p.events(events)
}

// role is of a Role or a ClusterRole, which have the same fields here.
func (p *page) role(r *rbacv1.Role, _ []core.Event) {
	p.line("Name", "%s", r.Name)
	p.marks(&r.ObjectMeta)
	p.head("PolicyRule")
	p.under(func() {
		p.text("Resources\tNon-Resource URLs\tResource Names\tVerbs\n  ---------\t-----------------\t--------------\t-----")
		for _, row := range ruleRows(r.Rules) {
			p.text("%s", row.text())
		}
	})
}

// ruleRow is what may be done with one resource, or one object of it, or one
// address.
type ruleRow struct {
	group, resource, name, address string
	verbs                          []string
}

// key is what kubectl sorts rows by: the rule as Go prints it.
func (r *ruleRow) key() string {
	lists := []any{r.verbs, singleOrNone(r.group, r.address == ""), singleOrNone(r.resource, r.address == ""),
		singleOrNone(r.name, r.name != ""), singleOrNone(r.address, r.address != "")}
	return fmt.Sprintf("Verbs:%v,APIGroups:%v,Resources:%v,ResourceNames:%v,NonResourceURLs:%v,", lists...)
}

func singleOrNone(word string, there bool) []string {
	if !there {
		return nil
	}
	return []string{word}
}

func (r *ruleRow) text() string {
	if r.address != "" {
		return fmt.Sprintf("\t[%s]\t[]\t%s", r.address, inBrackets(r.verbs))
	}
	return fmt.Sprintf("%s\t[]\t%s\t%s",
		printer.ResourceName(r.resource, r.group), inBrackets(singleOrNone(r.name, r.name != "")), inBrackets(r.verbs))
}

// ruleRows splits rules, and merges what they say about the same resource.
func ruleRows(rules []rbacv1.PolicyRule) []*ruleRow {
	var rows []*ruleRow
	same := map[[3]string]*ruleRow{}
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					row := same[[3]string{group, resource, name}]
					if row == nil {
						row = &ruleRow{group: group, resource: resource, name: name}
						same[[3]string{group, resource, name}] = row
						rows = append(rows, row)
					}
					row.verbs = append(row.verbs, rule.Verbs...)
				}
			}
		}
		for _, address := range rule.NonResourceURLs {
			rows = append(rows, &ruleRow{address: address, verbs: rule.Verbs})
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].key() < rows[j].key() })
	return rows
}

func inBrackets(words []string) string { return "[" + strings.Join(words, " ") + "]" }

func (p *page) binding(b *rbacv1.RoleBinding, _ []core.Event) {
	p.line("Name", "%s", b.Name)
	p.marks(&b.ObjectMeta)
	p.head("Role")
	p.under(func() {
		p.line("Kind", "%s", b.RoleRef.Kind)
		p.line("Name", "%s", b.RoleRef.Name)
	})
	p.head("Subjects")
	p.under(func() {
		p.text("Kind\tName\tNamespace\n  ----\t----\t---------")
		for _, subject := range b.Subjects {
			p.text("%s\t%s\t%s", subject.Kind, subject.Name, subject.Namespace)
		}
	})
}
