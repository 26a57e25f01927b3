/*
 * MongodbServer PORT FILE [KEY CERTIFICATE]: mongo-java-server on 127.0.0.1, its data in a file; with
 * a key (PKCS #8) and a certificate, both PEM, it speaks TLS.
 *
 * The store below commits once a second by itself. Here nothing is answered before it is committed,
 * so that a killed server has all that it acknowledged: it must never be less careful than that.
 */
import de.bwaldvogel.mongo.MongoBackend;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import java.io.ByteArrayInputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;

public final class MongodbServer {
	private static MongoBackend committed(H2Backend backend) {
		return (MongoBackend) Proxy.newProxyInstance(MongodbServer.class.getClassLoader(),
				new Class<?>[] {MongoBackend.class}, (proxy, method, arguments) -> {
			try {
				Object answer = method.invoke(backend, arguments);
				if (method.getName().startsWith("handle")
						&& backend.getMvStore().hasUnsavedChanges()) {
					backend.commit();
				}
				return answer;
			} catch (InvocationTargetException e) {
				throw e.getCause();
			}
		});
	}

	public static void main(String[] args) throws Exception {
		H2Backend backend = new H2Backend(args[1]);
		MongoServer server = new MongoServer(committed(backend));

		if (args.length > 2) {
			String key = Files.readString(Path.of(args[2])).replaceAll("-----[^-]+-----|\\s", "");
			byte[] certificate = Files.readAllBytes(Path.of(args[3]));

			server.enableSsl(KeyFactory.getInstance("EC").generatePrivate(
						new PKCS8EncodedKeySpec(Base64.getDecoder().decode(key))), null,
					(X509Certificate) CertificateFactory.getInstance("X.509")
						.generateCertificate(new ByteArrayInputStream(certificate)));
		}
		server.bind("127.0.0.1", Integer.parseInt(args[0]));
	}
}
