package settings

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kctl/kubectl/internal/command/frame"
)

// property returns a setter for the value in a kubeconfig that a path such as
// "contexts.NAME.namespace" means. Names may contain dots. Binary values are
// base64, unless raw.
func property(config *clientcmdapi.Config, path string, raw bool) (set func(string) error, err error) {
	part, rest, _ := strings.Cut(path, ".")
	name, field := rest, ""
	if at := strings.LastIndexByte(rest, '.'); at >= 0 {
		name, field = rest[:at], rest[at+1:]
	}
	texts, binaries := map[string]*string{}, map[string]*[]byte{}
	switch part {
	case "current-context":
		texts[""] = &config.CurrentContext
	case "contexts":
		context := entry(config.Contexts, name, clientcmdapi.NewContext)
		texts = map[string]*string{"cluster": &context.Cluster, "user": &context.AuthInfo, "namespace": &context.Namespace}
	case "clusters":
		cluster := entry(config.Clusters, name, clientcmdapi.NewCluster)
		texts = map[string]*string{
			"server": &cluster.Server, "certificate-authority": &cluster.CertificateAuthority,
			"tls-server-name": &cluster.TLSServerName, "proxy-url": &cluster.ProxyURL,
		}
		binaries["certificate-authority-data"] = &cluster.CertificateAuthorityData
		if field == "insecure-skip-tls-verify" {
			return func(value string) (err error) {
				cluster.InsecureSkipTLSVerify, err = strconv.ParseBool(value)
				return err
			}, nil
		}
	case "users":
		user := entry(config.AuthInfos, name, clientcmdapi.NewAuthInfo)
		texts = map[string]*string{
			"token": &user.Token, "tokenFile": &user.TokenFile, "client-certificate": &user.ClientCertificate,
			"client-key": &user.ClientKey, "username": &user.Username, "password": &user.Password,
		}
		binaries["client-certificate-data"], binaries["client-key-data"] = &user.ClientCertificateData, &user.ClientKeyData
	}
	if binary, ok := binaries[field]; ok {
		return func(value string) (err error) { *binary, err = bytesOf(value, raw); return err }, nil
	}
	text, ok := texts[field]
	if !ok {
		return nil, fmt.Errorf("unable to locate path %q", path)
	}
	return func(value string) error { *text = value; return nil }, nil
}

// bytesOf reads a binary value.
func bytesOf(value string, raw bool) ([]byte, error) {
	if raw {
		return []byte(value), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, fmt.Errorf("error decoding input value: %w", err)
	}
	return decoded, nil
}

// entry is the entry of a name, made if there is none.
func entry[T any](all map[string]*T, name string, make func() *T) *T {
	if all[name] == nil {
		all[name] = make()
	}
	return all[name]
}

func newConfigSet(c *frame.CLI) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "set PROPERTY_NAME PROPERTY_VALUE", Short: "Set an individual value in a kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return frame.UsageError(cmd, "a property and a value are required")
			}
			err := modify(c, func(config *clientcmdapi.Config) error {
				set, err := property(config, args[0], raw)
				if err != nil {
					return err
				}
				return set(args[1])
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Property %q set.\n", args[0])
			return err
		},
	}
	cmd.Flags().BoolVar(&raw, "set-raw-bytes", false, "When writing a []byte PROPERTY_VALUE, write the given string directly without base64 decoding.")
	return cmd
}

func newConfigUnset(c *frame.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "unset PROPERTY_NAME", Short: "Unset an individual value in a kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := frame.OneName(cmd, args)
			if err != nil {
				return err
			}
			err = modify(c, func(config *clientcmdapi.Config) error {
				part, entry, _ := strings.Cut(name, ".")
				_, context := config.Contexts[entry]
				_, cluster := config.Clusters[entry]
				_, user := config.AuthInfos[entry]
				switch {
				case part == "contexts" && context:
					delete(config.Contexts, entry)
				case part == "clusters" && cluster:
					delete(config.Clusters, entry)
				case part == "users" && user:
					delete(config.AuthInfos, entry)
				case (part == "contexts" || part == "clusters" || part == "users") && entry != "" && !strings.Contains(entry, "."):
					return nil // there is none
				default:
					set, err := property(config, name, true)
					if err != nil {
						return err
					}
					if strings.HasSuffix(name, ".insecure-skip-tls-verify") {
						return set("false")
					}
					return set("")
				}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "Property %q unset.\n", name)
			return err
		},
	}
}
