// Command gnmi_target offers this machine's interfaces by gNMI: the kernel's counters, with the server that openconfig/gnmi has for what
// targets send (its cache and its Subscribe), over TLS. It prints its address when it listens.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/openconfig/gnmi/cache"
	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/subscribe"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// The cache holds targets by their names; this is the only one.
const target = "switch"

// Columns of /proc/net/dev behind the interface's name, and their leaves.
var counters = map[int]string{0: "in-octets", 1: "in-pkts", 3: "in-discards", 8: "out-octets", 9: "out-pkts", 11: "out-discards"}

func main() {
	address := flag.String("listen", "127.0.0.1:9339", "address and port")
	certificate := flag.String("certificate", "target.pem", "of the server, PEM")
	key := flag.String("key", "target.key", "its key, PEM")
	interval := flag.Duration("interval", time.Second, "between two samples")
	flag.Parse()
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	check(err)
	values := cache.New([]string{target})
	server, err := subscribe.NewServer(values)
	check(err)
	values.SetClient(server.Update)
	check(sample(values.GetTarget(target)))
	values.GetTarget(target).Sync()
	listener, err := net.Listen("tcp", *address)
	check(err)
	credentials := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}})
	grpc := grpc.NewServer(grpc.Creds(credentials))
	pb.RegisterGNMIServer(grpc, one{server})
	go func() { check(grpc.Serve(listener)) }()
	fmt.Println(listener.Addr())
	for range time.Tick(*interval) {
		check(sample(values.GetTarget(target)))
	}
}

// sample reads all interfaces' counters.
func sample(to *cache.Target) error {
	at := time.Now().UnixNano()
	text, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(text), "\n") {
		name, rest, found := strings.Cut(line, ":")
		columns := strings.Fields(rest)
		if !found || len(columns) < 16 {
			continue
		}
		name = strings.TrimSpace(name)
		interfaces := []*pb.PathElem{{Name: "interfaces"}, {Name: "interface", Key: map[string]string{"name": name}}, {Name: "state"}}
		notification := &pb.Notification{Timestamp: at, Prefix: &pb.Path{Target: target, Elem: interfaces}}
		notification.Update = append(notification.Update, &pb.Update{
			Path: elements("oper-status"),
			Val:  &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: state(name)}},
		})
		for column, leaf := range counters {
			count, err := strconv.ParseUint(columns[column], 10, 64)
			if err != nil {
				return err
			}
			notification.Update = append(notification.Update, &pb.Update{
				Path: elements("counters", leaf),
				Val:  &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: count}},
			})
		}
		if err := to.GnmiUpdate(notification); err != nil {
			return err
		}
	}
	return nil
}

// state is an interface's, in the words of openconfig-interfaces.
func state(name string) string {
	if card, err := net.InterfaceByName(name); err == nil && card.Flags&net.FlagRunning != 0 {
		return "UP"
	}
	return "DOWN"
}

func elements(names ...string) *pb.Path {
	path := &pb.Path{}
	for _, name := range names {
		path.Elem = append(path.Elem, &pb.PathElem{Name: name})
	}
	return path
}

// one is a server of one target: who subscribes need not name it (gNMI specification, 2.2.2.1), but the cache must know.
type one struct{ *subscribe.Server }

func (server one) Subscribe(stream pb.GNMI_SubscribeServer) error {
	return server.Server.Subscribe(named{stream})
}

type named struct{ pb.GNMI_SubscribeServer }

func (stream named) Recv() (*pb.SubscribeRequest, error) {
	request, err := stream.GNMI_SubscribeServer.Recv()
	if list := request.GetSubscribe(); list != nil {
		if list.Prefix == nil {
			list.Prefix = &pb.Path{}
		}
		list.Prefix.Target = target
	}
	return request, err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
