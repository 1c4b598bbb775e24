package generate

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ServicePort is a port of a service.
type ServicePort struct {
	Name, Protocol string
	Port           int32
	Target         string // a number or a name; "" is the same as Port
	NodePort       int32
}

func (p ServicePort) content() fields {
	out := fields{"port": int64(p.Port), "protocol": p.Protocol, "targetPort": intOrString(cmp.Or(p.Target, fmt.Sprint(p.Port)))}
	if p.Name != "" {
		out["name"] = p.Name
	}
	if p.NodePort > 0 {
		out["nodePort"] = int64(p.NodePort)
	}
	return out
}

// TCPPorts reads PORT[:TARGET] settings.
func TCPPorts(settings []string) ([]ServicePort, error) {
	var all []ServicePort
	for _, setting := range settings {
		text, target, _ := strings.Cut(setting, ":")
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil || port < 1 || port > 65535 {
			return nil, fmt.Errorf("invalid port %q: must be a number from 1 to 65535", text)
		}
		all = append(all, ServicePort{
			Name: strings.ReplaceAll(setting, ":", "-"), Protocol: "TCP", Port: int32(port), Target: cmp.Or(target, text),
		})
	}
	return all, nil
}

// ServiceOptions are the options of a service. Empty ones are left to the
// server.
type ServiceOptions struct {
	Type             string // ClusterIP, NodePort, LoadBalancer or ExternalName
	ClusterIP        string // an address, or None
	ExternalName     string // where an ExternalName leads, which needs one
	Selector, Labels map[string]string
	Ports            []ServicePort

	ExternalIP, BalancerIP string
	Affinity               string // None or ClientIP
}

// Service makes a service.
func Service(name string, o ServiceOptions) (*unstructured.Unstructured, error) {
	if o.ExternalName == "" && o.Type == "ExternalName" {
		return nil, errors.New("an external name must be specified")
	}
	if o.Affinity != "" && o.Affinity != "None" && o.Affinity != "ClientIP" {
		return nil, fmt.Errorf("unknown session affinity: %s", o.Affinity)
	}
	spec := fields{}
	for field, value := range map[string]string{"type": o.Type, "clusterIP": o.ClusterIP, "externalName": o.ExternalName,
		"sessionAffinity": o.Affinity} {
		if value != "" {
			spec[field] = value
		}
	}
	if o.ExternalIP != "" {
		spec["externalIPs"] = []any{o.ExternalIP}
	}
	if o.BalancerIP != "" && o.Type == "LoadBalancer" {
		spec["loadBalancerIP"] = o.BalancerIP
	}
	if len(o.Selector) > 0 {
		plain := fields{}
		for key, value := range o.Selector {
			plain[key] = value
		}
		spec["selector"] = plain
	}
	var all []any
	for _, port := range o.Ports {
		all = append(all, port.content())
	}
	if len(all) > 0 {
		spec["ports"] = all
	}
	out := object("v1", "Service", name, fields{"spec": spec, "status": fields{"loadBalancer": fields{}}})
	if len(o.Labels) > 0 {
		out.SetLabels(o.Labels)
	}
	return out, nil
}

// Ingress makes an ingress of rules HOST/PATH=SERVICE:PORT[,tls[=SECRET]].
func Ingress(name, class, defaultBackend string, rules, annotations []string) (*unstructured.Unstructured, error) {
	if len(rules) == 0 && defaultBackend == "" {
		return nil, errors.New(
			"not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a " +
				"list of rules (which catch specific paths)")
	}
	spec := fields{}
	if class != "" {
		spec["ingressClassName"] = class
	}
	if defaultBackend != "" {
		service, port, ok := strings.Cut(defaultBackend, ":")
		if !ok || service == "" || port == "" {
			return nil, errors.New("default-backend should be in format servicename:serviceport")
		}
		spec["defaultBackend"] = backend(service, port)
	}
	parsed, tls, err := ingressRules(rules)
	if err != nil {
		return nil, err
	}
	if len(parsed) > 0 {
		spec["rules"] = parsed
	}
	if len(tls) > 0 {
		spec["tls"] = tls
	}
	out := object("networking.k8s.io/v1", "Ingress", name, fields{"spec": spec, "status": fields{"loadBalancer": fields{}}})
	notes, err := Pairs("annotation", annotations)
	if len(notes) > 0 {
		out.SetAnnotations(notes)
	}
	return out, err
}

func backend(service, port string) fields {
	where := fields{"name": port}
	if number, err := strconv.ParseInt(port, 10, 32); err == nil {
		where = fields{"number": number}
	}
	return fields{"service": fields{"name": service, "port": where}}
}

// ingressRule is one HOST/PATH=SERVICE:PORT[,tls[=SECRET]].
type ingressRule struct {
	host, path, service, port string
	tls                       bool
	secret                    string
}

func parseIngressRule(rule string) (ingressRule, error) {
	where, to, ok := strings.Cut(rule, "=")
	to, options, hasOptions := strings.Cut(to, ",")
	r := ingressRule{tls: hasOptions}
	var hasPath, hasPort bool
	r.host, r.path, hasPath = strings.Cut(where, "/")
	r.service, r.port, hasPort = strings.Cut(to, ":")
	key, secret, _ := strings.Cut(options, "=")
	r.secret = secret
	if !ok || !hasPath || !hasPort || r.service == "" || r.port == "" || hasOptions && key != "tls" {
		return r, fmt.Errorf("rule %s is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]", rule)
	}
	return r, nil
}

// ingressRules puts the paths of one host under one rule, and the hosts of one secret under
// one entry of tls.
func ingressRules(rules []string) (parsed, tls []any, err error) {
	byHost, bySecret, secured := map[string]fields{}, map[string]fields{}, map[string]bool{}
	for _, rule := range rules {
		r, err := parseIngressRule(rule)
		if err != nil {
			return nil, nil, err
		}
		one := byHost[r.host]
		if one == nil {
			one = fields{"http": fields{"paths": []any{}}}
			if r.host != "" {
				one["host"] = r.host
			}
			byHost[r.host] = one
			parsed = append(parsed, one)
		}
		paths := one["http"].(fields)
		paths["paths"] = append(paths["paths"].([]any), r.target())
		if !r.tls || secured[r.host] || r.host == "" && r.secret == "" { // without either, tls says nothing
			continue
		}
		secured[r.host] = true
		entry := bySecret[r.secret]
		if entry == nil {
			if entry = (fields{}); r.secret != "" {
				entry["secretName"] = r.secret
			}
			bySecret[r.secret] = entry
			tls = append(tls, entry)
		}
		if r.host != "" {
			hosts, _ := entry["hosts"].([]any)
			entry["hosts"] = append(hosts, r.host)
		}
	}
	return parsed, tls, nil
}

// target is the path of the rule, and where it leads.
func (r ingressRule) target() fields {
	path, prefix := strings.CutSuffix(r.path, "*")
	kind := "Exact"
	if prefix {
		kind = "Prefix"
	}
	return fields{"path": "/" + path, "pathType": kind, "backend": backend(r.service, r.port)}
}
